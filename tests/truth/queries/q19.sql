-- What did parts of three brands, sold by air and delivered in person, bring after discounts?
-- may part: p_brand in ('Brand#12', 'Brand#23', 'Brand#34')
-- must part: p_partkey in (select l_partkey from lineitem where l_shipmode in ('AIR', 'REG AIR') and l_shipinstruct = 'DELIVER IN PERSON' and ((p_brand = 'Brand#12' and p_container like 'SM %' and l_quantity between 1 and 11 and p_size between 1 and 5) or (p_brand = 'Brand#23' and p_container like 'MED %' and l_quantity between 10 and 20 and p_size between 1 and 10) or (p_brand = 'Brand#34' and p_container like 'LG %' and l_quantity between 20 and 30 and p_size between 1 and 15)))
-- may lineitem: l_shipmode in ('AIR', 'REG AIR')
-- must lineitem: l_shipmode in ('AIR', 'REG AIR') and l_shipinstruct = 'DELIVER IN PERSON' and l_partkey in (select p_partkey from part where (p_brand = 'Brand#12' and p_container like 'SM %' and l_quantity between 1 and 11 and p_size between 1 and 5) or (p_brand = 'Brand#23' and p_container like 'MED %' and l_quantity between 10 and 20 and p_size between 1 and 10) or (p_brand = 'Brand#34' and p_container like 'LG %' and l_quantity between 20 and 30 and p_size between 1 and 15))
select sum(l_extendedprice * (1 - l_discount)) as revenue
from lineitem
join part on p_partkey = l_partkey
where
  l_shipmode in ('AIR', 'REG AIR')
  and l_shipinstruct = 'DELIVER IN PERSON'
  and (
    (
      p_brand = 'Brand#12'
      and p_container like 'SM %'
      and l_quantity between 1 and 11
      and p_size between 1 and 5
    )
    or (
      p_brand = 'Brand#23'
      and p_container like 'MED %'
      and l_quantity between 10 and 20
      and p_size between 1 and 10
    )
    or (
      p_brand = 'Brand#34'
      and p_container like 'LG %'
      and l_quantity between 20 and 30
      and p_size between 1 and 15
    )
  )
