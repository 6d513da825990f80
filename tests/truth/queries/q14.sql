-- How much of a month's revenue came from promoted parts?
-- may lineitem: l_shipyear = 1995
-- must lineitem: l_shipyear = 1995 and l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-10-01' and l_partkey in (select p_partkey from part where p_brand is not null)
-- may part: p_brand is not null
-- must part: p_brand is not null and p_partkey in (select l_partkey from lineitem where l_shipyear = 1995 and l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-10-01')
select
  100.00
  * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end)
  / sum(l_extendedprice * (1 - l_discount)) as promo_revenue
from lineitem
join part on l_partkey = p_partkey
where
  l_shipyear = 1995
  and l_shipdate >= date '1995-09-01'
  and l_shipdate < date '1995-10-01'
  and p_brand is not null
