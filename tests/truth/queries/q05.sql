-- What did suppliers of a region earn with customers of their own nation?
-- may orders: o_quarter between date '1994-01-01' and date '1994-10-01'
-- may lineitem: l_shipyear in (1994, 1995)
-- must lineitem: l_shipyear in (1994, 1995) and l_orderkey in (select o_orderkey from orders join customer on c_custkey = o_custkey join supplier on s_nationkey = c_nationkey join nation on n_nationkey = s_nationkey where n_regionkey = 2 and s_suppkey = l_suppkey and o_quarter between date '1994-01-01' and date '1994-10-01')
-- must orders: o_quarter between date '1994-01-01' and date '1994-10-01' and o_orderkey in (select l_orderkey from lineitem join supplier on l_suppkey = s_suppkey join nation on n_nationkey = s_nationkey join customer on c_nationkey = s_nationkey where n_regionkey = 2 and c_custkey = o_custkey and l_shipyear in (1994, 1995))
-- must customer: c_nationkey in (select n_nationkey from nation where n_regionkey = 2) and c_custkey in (select o_custkey from orders join lineitem on l_orderkey = o_orderkey join supplier on s_suppkey = l_suppkey where s_nationkey = c_nationkey and l_shipyear in (1994, 1995) and o_quarter between date '1994-01-01' and date '1994-10-01')
-- must supplier: s_nationkey in (select n_nationkey from nation where n_regionkey = 2) and s_suppkey in (select l_suppkey from lineitem join orders on l_orderkey = o_orderkey join customer on c_custkey = o_custkey where c_nationkey = s_nationkey and l_shipyear in (1994, 1995) and o_quarter between date '1994-01-01' and date '1994-10-01')
-- must nation: n_regionkey in (select r_regionkey from region where r_name = 'ASIA')
-- partitioned by: n_name
select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
from customer, orders, lineitem, supplier, nation, region
where
  c_custkey = o_custkey
  and l_orderkey = o_orderkey
  and l_suppkey = s_suppkey
  and c_nationkey = s_nationkey
  and s_nationkey = n_nationkey
  and n_regionkey = r_regionkey
  and r_name = 'ASIA'
  and o_quarter between date '1994-01-01' and date '1994-10-01'
  and l_shipyear in (1994, 1995)
group by n_name
order by revenue desc
