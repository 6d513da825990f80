-- What was the profit on one line of parts, by nation and year, where the brand is not known?
-- may part: p_brand is null
-- must part: p_brand is null and p_name like '%green%'
-- must lineitem: l_partkey in (select p_partkey from part where p_brand is null and p_name like '%green%') and l_suppkey in (select s_suppkey from supplier where s_nationkey is not null) and l_orderkey in (select o_orderkey from orders)
-- must partsupp: ps_partkey in (select p_partkey from part where p_brand is null and p_name like '%green%') and ps_suppkey in (select s_suppkey from supplier where s_nationkey is not null) and (ps_partkey, ps_suppkey) in (select (l_partkey, l_suppkey) from lineitem)
-- must orders: o_orderkey in (select l_orderkey from lineitem join part on p_partkey = l_partkey join supplier on s_suppkey = l_suppkey where s_nationkey is not null and p_brand is null and p_name like '%green%')
-- may supplier: s_nationkey is not null
-- must supplier: s_nationkey is not null and s_suppkey in (select l_suppkey from lineitem join part on p_partkey = l_partkey where p_brand is null and p_name like '%green%')
-- must nation: n_nationkey in (select s_nationkey from supplier join lineitem on l_suppkey = s_suppkey join part on p_partkey = l_partkey where p_brand is null and p_name like '%green%')
-- partitioned by: nation, o_year
select nation, o_year, sum(amount) as sum_profit
from (
  select
    n_name as nation,
    year(o_orderdate) as o_year,
    l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount
  from part
  join lineitem on p_partkey = l_partkey
  join supplier on s_suppkey = l_suppkey
  join partsupp on ps_suppkey = l_suppkey and ps_partkey = l_partkey
  join orders on o_orderkey = l_orderkey
  join nation on s_nationkey = n_nationkey
  where p_name like '%green%' and p_brand is null
) as profit
group by nation, o_year
order by nation, o_year desc
