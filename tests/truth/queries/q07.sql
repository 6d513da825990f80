-- What was shipped between two nations, by year?
-- may lineitem: l_shipyear in (1995, 1996)
-- must lineitem: l_shipyear in (1995, 1996) and l_orderkey in (select o_orderkey from orders join customer on c_custkey = o_custkey join nation as n2 on n2.n_nationkey = c_nationkey join supplier on s_suppkey = l_suppkey join nation as n1 on n1.n_nationkey = s_nationkey where (n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY') or (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE'))
-- must supplier: s_nationkey in (select n_nationkey from nation where n_name in ('FRANCE', 'GERMANY')) and s_suppkey in (select l_suppkey from lineitem join orders on o_orderkey = l_orderkey join customer on c_custkey = o_custkey join nation on n_nationkey = c_nationkey where l_shipyear in (1995, 1996) and n_name in ('FRANCE', 'GERMANY') and c_nationkey <> s_nationkey)
-- must orders: o_orderkey in (select l_orderkey from lineitem join supplier on s_suppkey = l_suppkey join nation as n1 on n1.n_nationkey = s_nationkey join customer on c_custkey = o_custkey join nation as n2 on n2.n_nationkey = c_nationkey where l_shipyear in (1995, 1996) and ((n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY') or (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE')))
-- must customer: c_nationkey in (select n_nationkey from nation where n_name in ('FRANCE', 'GERMANY')) and c_custkey in (select o_custkey from orders join lineitem on l_orderkey = o_orderkey join supplier on s_suppkey = l_suppkey join nation on n_nationkey = s_nationkey where l_shipyear in (1995, 1996) and n_name in ('FRANCE', 'GERMANY') and c_nationkey <> s_nationkey)
-- must nation: n_name in ('FRANCE', 'GERMANY')
-- partitioned by: supp_nation, l_year
select supp_nation, cust_nation, l_year, sum(volume) as revenue
from (
  select
    n1.n_name as supp_nation,
    n2.n_name as cust_nation,
    year(l_shipdate) as l_year,
    l_extendedprice * (1 - l_discount) as volume
  from supplier
  join lineitem on s_suppkey = l_suppkey
  join orders on o_orderkey = l_orderkey
  join customer on c_custkey = o_custkey
  join nation as n1 on s_nationkey = n1.n_nationkey
  join nation as n2 on c_nationkey = n2.n_nationkey
  where
    (
      (n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY')
      or (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE')
    )
    and l_shipyear in (1995, 1996)
) as shipping
group by supp_nation, cust_nation, l_year
order by supp_nation, cust_nation, l_year
