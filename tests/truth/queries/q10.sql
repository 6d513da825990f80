-- Which customers lost most by returning what they had ordered in a quarter?
-- may customer: c_mktsegment is not null
-- must customer: c_mktsegment is not null and c_custkey in (select o_custkey from orders join lineitem on l_orderkey = o_orderkey where o_quarter = date '1993-10-01' and l_returnflag = 'R')
-- may orders: o_quarter = date '1993-10-01'
-- must lineitem: l_returnflag = 'R' and l_orderkey in (select o_orderkey from orders join customer on c_custkey = o_custkey where c_mktsegment is not null and o_quarter = date '1993-10-01')
-- must nation: n_nationkey in (select c_nationkey from customer join orders on o_custkey = c_custkey join lineitem on l_orderkey = o_orderkey where c_mktsegment is not null and o_quarter = date '1993-10-01' and l_returnflag = 'R')
-- partitioned by: n_name
select
  c_custkey,
  c_name,
  sum(l_extendedprice * (1 - l_discount)) as revenue,
  c_acctbal,
  n_name,
  c_address,
  c_phone,
  c_comment
from customer
join orders on c_custkey = o_custkey
join lineitem on l_orderkey = o_orderkey
join nation on c_nationkey = n_nationkey
where
  o_quarter = date '1993-10-01'
  and c_mktsegment is not null
  and l_returnflag = 'R'
group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
order by revenue desc
limit 20
