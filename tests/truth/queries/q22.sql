-- Where are customers who have money and have not ordered since 1997?
-- may customer: c_mktsegment in ('BUILDING', 'HOME/GARDEN 50%2F', 'zürich 東京', 'a=b;c:d')
-- must customer: c_mktsegment in ('BUILDING', 'HOME/GARDEN 50%2F', 'zürich 東京', 'a=b;c:d') and c_acctbal > 0 and substr(c_phone, 1, 2) in ('13', '31', '23', '29', '30', '18', '17')
-- may orders: o_quarter >= date '1997-01-01'
-- must orders: o_quarter >= date '1997-01-01' and o_custkey in (select c_custkey from customer where c_mktsegment in ('BUILDING', 'HOME/GARDEN 50%2F', 'zürich 東京', 'a=b;c:d') and substr(c_phone, 1, 2) in ('13', '31', '23', '29', '30', '18', '17') and c_acctbal > 5000)
-- partitioned by: cntrycode
select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal
from (
  select substr(c_phone, 1, 2) as cntrycode, c_acctbal
  from customer
  where
    c_mktsegment in ('BUILDING', 'HOME/GARDEN 50%2F', 'zürich 東京', 'a=b;c:d')
    and substr(c_phone, 1, 2) in ('13', '31', '23', '29', '30', '18', '17')
    and c_acctbal > (
      select avg(rich.c_acctbal)
      from customer as rich
      where
        rich.c_mktsegment in ('BUILDING', 'HOME/GARDEN 50%2F', 'zürich 東京', 'a=b;c:d')
        and rich.c_acctbal > 0.00
        and substr(rich.c_phone, 1, 2) in ('13', '31', '23', '29', '30', '18', '17')
    )
    and not exists (
      select 1
      from orders
      where o_custkey = c_custkey and o_quarter >= date '1997-01-01'
    )
) as custsale
group by cntrycode
order by cntrycode
