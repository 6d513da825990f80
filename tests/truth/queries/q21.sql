-- Which suppliers of a nation were alone in keeping orders of several suppliers waiting?
-- may lineitem: l_shipyear between 1994 and 1996
-- must lineitem: l_shipyear = 1995 and l_receiptdate > l_commitdate and l_suppkey in (select s_suppkey from supplier join nation on n_nationkey = s_nationkey where n_name = 'SAUDI ARABIA') and l_orderkey in (select o_orderkey from orders where o_orderstatus = 'F')
-- must orders: o_orderstatus = 'F' and o_orderkey in (select l_orderkey from lineitem join supplier on s_suppkey = l_suppkey join nation on n_nationkey = s_nationkey where n_name = 'SAUDI ARABIA' and l_shipyear = 1995 and l_receiptdate > l_commitdate)
-- must supplier: s_nationkey in (select n_nationkey from nation where n_name = 'SAUDI ARABIA')
-- must nation: n_name = 'SAUDI ARABIA'
-- partitioned by: numwait
select s_name, count(*) as numwait
from supplier
join lineitem as l1 on s_suppkey = l1.l_suppkey
join orders on o_orderkey = l1.l_orderkey
join nation on s_nationkey = n_nationkey
where
  o_orderstatus = 'F'
  and l1.l_receiptdate > l1.l_commitdate
  and l1.l_shipyear = 1995
  and n_name = 'SAUDI ARABIA'
  and exists (
    select 1
    from lineitem as l2
    where
      l2.l_orderkey = l1.l_orderkey
      and l2.l_suppkey <> l1.l_suppkey
      and l2.l_shipyear between 1994 and 1996
  )
  and not exists (
    select 1
    from lineitem as l3
    where
      l3.l_orderkey = l1.l_orderkey
      and l3.l_suppkey <> l1.l_suppkey
      and l3.l_receiptdate > l3.l_commitdate
      and l3.l_shipyear between 1994 and 1996
  )
group by s_name
order by numwait desc, s_name
limit 100
