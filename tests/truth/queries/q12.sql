-- Do cheaper ways of shipping make urgent orders late?
-- may lineitem: l_shipmode in ('MAIL', 'AIR%2FSEA', ' ') and l_shipyear in (1993, 1994)
-- must lineitem: l_shipmode in ('MAIL', 'AIR%2FSEA', ' ') and l_shipyear in (1993, 1994) and l_commitdate < l_receiptdate and l_shipdate < l_commitdate and l_receiptdate >= date '1994-01-01' and l_receiptdate < date '1995-01-01' and l_orderkey in (select o_orderkey from orders)
-- must orders: o_orderkey in (select l_orderkey from lineitem where l_shipmode in ('MAIL', 'AIR%2FSEA', ' ') and l_shipyear in (1993, 1994) and l_commitdate < l_receiptdate and l_shipdate < l_commitdate and l_receiptdate >= date '1994-01-01' and l_receiptdate < date '1995-01-01')
-- partitioned by: l_shipmode
select
  l_shipmode,
  sum(case when o_orderpriority in ('1-URGENT', '2-HIGH') then 1 else 0 end) as high_line_count,
  sum(case when o_orderpriority not in ('1-URGENT', '2-HIGH') then 1 else 0 end) as low_line_count
from orders
join lineitem on o_orderkey = l_orderkey
where
  l_shipmode in ('MAIL', 'AIR%2FSEA', ' ')
  and l_shipyear in (1993, 1994)
  and l_commitdate < l_receiptdate
  and l_shipdate < l_commitdate
  and l_receiptdate >= date '1994-01-01'
  and l_receiptdate < date '1995-01-01'
group by l_shipmode
order by l_shipmode
