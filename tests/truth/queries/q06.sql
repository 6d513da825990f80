-- What would have been earned without the discounts of a year, on goods whose way is known?
-- may lineitem: l_shipyear = 1994 and l_shipmode is not null
-- must lineitem: l_shipyear = 1994 and l_shipmode is not null and l_discount between 0.05 and 0.07 and l_quantity < 24
select sum(l_extendedprice * l_discount) as revenue
from lineitem
where
  l_shipyear = 1994
  and l_shipmode is not null
  and l_discount between 0.05 and 0.07
  and l_quantity < 24
