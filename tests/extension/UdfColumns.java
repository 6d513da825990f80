// A visitor of the listener's that it does not have: columns that Python functions are computed of.
package shop;

import io.openlineage.client.utils.TransformationInfo;
import io.openlineage.spark.agent.lifecycle.plan.column.ColumnLevelLineageContext;
import io.openlineage.spark.agent.lifecycle.plan.column.ColumnLevelLineageVisitor;
import io.openlineage.spark.api.OpenLineageContext;
import io.openlineage.spark.api.OpenLineageEventHandlerFactory;
import java.util.Collection;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

public class UdfColumns implements OpenLineageEventHandlerFactory, ColumnLevelLineageVisitor {
  @Override
  public Collection<ColumnLevelLineageVisitor> createColumnLevelLineageVisitors(
      OpenLineageContext context) {
    return List.of(this);
  }

  @Override
  public void collectInputs(ColumnLevelLineageContext context, LogicalPlan plan) {}

  @Override
  public void collectOutputs(ColumnLevelLineageContext context, LogicalPlan plan) {}

  @Override
  public void collectExpressionDependencies(ColumnLevelLineageContext context, LogicalPlan plan) {
    if (!(plan instanceof BaseEvalPython)) {
      return;
    }
    BaseEvalPython functions = (BaseEvalPython) plan;
    for (int i = 0; i < functions.udfs().size(); i++) {
      Attribute result = functions.resultAttrs().apply(i);
      var arguments = functions.udfs().apply(i).references().toSeq();
      for (int k = 0; k < arguments.size(); k++) {
        context
            .getBuilder()
            .addDependency(
                result.exprId(),
                arguments.apply(k).exprId(),
                "shop_function",
                TransformationInfo.transformation("shop_function"));
      }
    }
  }
}
