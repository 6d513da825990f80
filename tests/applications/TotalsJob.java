import org.apache.spark.sql.SparkSession;

/** A job for the JVM alone: it sums a table of the lake by day, and may wait before it ends. */
public class TotalsJob {
  public static void main(String[] arguments) throws InterruptedException {
    SparkSession spark = SparkSession.builder().getOrCreate();
    spark.range(6).selectExpr("id % 2 AS day", "id AS amount")
        .write().partitionBy("day").parquet(arguments[0] + "/orders");
    spark.read().parquet(arguments[0] + "/orders").where("day = 1").groupBy("day").sum("amount")
        .toDF("day", "total").write().parquet(arguments[0] + "/totals");
    if (arguments.length > 1) {
      Thread.sleep(Long.parseLong(arguments[1]));
    }
    spark.stop();
  }
}
