-- Which ten orders that had not been shipped by a day are worth most?
-- may customer: c_mktsegment = 'BUILDING'
-- may orders: o_quarter <= date '1995-01-01'
-- must orders: o_quarter <= date '1995-01-01' and o_orderdate < date '1995-03-15' and o_custkey in (select c_custkey from customer where c_mktsegment = 'BUILDING') and o_orderkey in (select l_orderkey from lineitem where l_shipyear >= 1995 and l_shipdate > date '1995-03-15')
-- may lineitem: l_shipyear >= 1995
-- must lineitem: l_shipyear >= 1995 and l_shipdate > date '1995-03-15' and l_orderkey in (select o_orderkey from orders join customer on o_custkey = c_custkey where c_mktsegment = 'BUILDING' and o_quarter <= date '1995-01-01' and o_orderdate < date '1995-03-15')
-- partitioned by: o_orderdate
select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
from customer
join orders on c_custkey = o_custkey
join lineitem on l_orderkey = o_orderkey
where
  c_mktsegment = 'BUILDING'
  and o_quarter <= date '1995-01-01'
  and o_orderdate < date '1995-03-15'
  and l_shipyear >= 1995
  and l_shipdate > date '1995-03-15'
group by l_orderkey, o_orderdate, o_shippriority
order by revenue desc, o_orderdate
limit 10
