-- How many customers have how many orders, of those whose segment is blank or not known?
-- may customer: c_mktsegment = ' ' or c_mktsegment is null
-- must orders: o_comment not like '%special%requests%' and o_custkey in (select c_custkey from customer where c_mktsegment = ' ' or c_mktsegment is null)
-- partitioned by: c_count
with counted as (
  select c_custkey, count(o_orderkey) as c_count
  from customer
  left join orders on c_custkey = o_custkey and o_comment not like '%special%requests%'
  where c_mktsegment = ' ' or c_mktsegment is null
  group by c_custkey
)
select c_count, count(*) as custdist
from counted
group by c_count
order by custdist desc, c_count desc
