-- How many orders of a quarter have an item that came late, by priority?
-- may orders: o_quarter = date '1993-07-01'
-- may lineitem: l_shipyear in (1993, 1994)
-- must lineitem: l_shipyear in (1993, 1994) and l_commitdate < l_receiptdate and l_orderkey in (select o_orderkey from orders where o_quarter = date '1993-07-01')
-- partitioned by: o_orderpriority
select o_orderpriority, count(*) as order_count
from orders
where
  o_quarter = date '1993-07-01'
  and exists (
    select 1
    from lineitem
    where l_orderkey = o_orderkey and l_shipyear in (1993, 1994) and l_commitdate < l_receiptdate
  )
group by o_orderpriority
order by o_orderpriority
