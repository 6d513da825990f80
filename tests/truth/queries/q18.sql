-- Which customers placed large orders lately?
-- may orders: o_quarter >= date '1996-01-01'
-- must orders: o_quarter >= date '1996-01-01' and o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 280)
-- must lineitem: l_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 280) and l_orderkey in (select o_orderkey from orders where o_quarter >= date '1996-01-01')
-- must customer: c_custkey in (select o_custkey from orders where o_quarter >= date '1996-01-01' and o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 280))
select
  c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) as total_quantity
from customer
join orders on c_custkey = o_custkey
join lineitem on o_orderkey = l_orderkey
where
  o_quarter >= date '1996-01-01'
  and o_orderkey in (
    select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 280
  )
group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
order by o_totalprice desc, o_orderdate
limit 100
