-- How did a nation's share of a region's market in one type of part change?
-- may orders: o_quarter between date '1995-01-01' and date '1996-10-01'
-- must orders: o_quarter between date '1995-01-01' and date '1996-10-01' and o_orderkey in (select l_orderkey from lineitem join part on p_partkey = l_partkey join supplier on s_suppkey = l_suppkey where p_type = 'ECONOMY ANODIZED STEEL' and s_nationkey is not null) and o_custkey in (select c_custkey from customer join nation on n_nationkey = c_nationkey where n_regionkey = 1)
-- must lineitem: l_partkey in (select p_partkey from part where p_type = 'ECONOMY ANODIZED STEEL') and l_suppkey in (select s_suppkey from supplier where s_nationkey is not null) and l_orderkey in (select o_orderkey from orders join customer on o_custkey = c_custkey join nation on n_nationkey = c_nationkey where n_regionkey = 1 and o_quarter between date '1995-01-01' and date '1996-10-01')
-- must part: p_type = 'ECONOMY ANODIZED STEEL' and p_partkey in (select l_partkey from lineitem join supplier on s_suppkey = l_suppkey join orders on o_orderkey = l_orderkey join customer on o_custkey = c_custkey join nation on n_nationkey = c_nationkey where s_nationkey is not null and n_regionkey = 1 and o_quarter between date '1995-01-01' and date '1996-10-01')
-- may supplier: s_nationkey is not null
-- must supplier: s_nationkey is not null and s_suppkey in (select l_suppkey from lineitem join part on p_partkey = l_partkey join orders on o_orderkey = l_orderkey join customer on o_custkey = c_custkey join nation on n_nationkey = c_nationkey where p_type = 'ECONOMY ANODIZED STEEL' and n_regionkey = 1 and o_quarter between date '1995-01-01' and date '1996-10-01')
-- must customer: c_nationkey in (select n_nationkey from nation where n_regionkey = 1) and c_custkey in (select o_custkey from orders join lineitem on l_orderkey = o_orderkey join part on p_partkey = l_partkey join supplier on s_suppkey = l_suppkey where s_nationkey is not null and p_type = 'ECONOMY ANODIZED STEEL' and o_quarter between date '1995-01-01' and date '1996-10-01')
-- must nation: n_regionkey = 1
-- partitioned by: o_year
select
  o_year,
  sum(case when nation = 'BRAZIL' then volume else 0 end) / sum(volume) as mkt_share
from (
  select
    year(o_orderdate) as o_year,
    l_extendedprice * (1 - l_discount) as volume,
    n2.n_name as nation
  from part, supplier, lineitem, orders, customer, nation as n1, nation as n2, region
  where
    p_partkey = l_partkey
    and s_suppkey = l_suppkey
    and l_orderkey = o_orderkey
    and o_custkey = c_custkey
    and c_nationkey = n1.n_nationkey
    and n1.n_regionkey = r_regionkey
    and r_name = 'AMERICA'
    and s_nationkey = n2.n_nationkey
    and o_quarter between date '1995-01-01' and date '1996-10-01'
    and p_type = 'ECONOMY ANODIZED STEEL'
) as all_nations
group by o_year
order by o_year
