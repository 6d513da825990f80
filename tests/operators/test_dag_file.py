"""What the operator adds to a DAG file: to making its tasks, and to the serialised DAG."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, BaseOperator
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_sparklineage.expectations import DatasetSubset
from airflow_provider_sparklineage.operators.spark_submit import (
    SparkLineageMixin,
    SparkLineageSubmitOperator,
)

pytestmark = pytest.mark.airflow


def operator(of=SparkLineageSubmitOperator, **kwargs):
    return of(task_id="revenue", application="job.py", **kwargs)


def serialised(of=SparkLineageSubmitOperator, **kwargs):
    with DAG("shop", schedule=None) as dag:
        operator(of, **kwargs)
    [task] = DagSerialization.to_dict(dag)["dag"]["tasks"]
    return task["__var"]


# --- the serialised DAG ---------------------------------------------------------------------------


def test_what_is_not_given_is_in_no_serialised_task():
    ours, stock = serialised(), serialised(SparkSubmitOperator)
    assert set(ours) - set(stock) == {"_operator_extra_links"}
    assert {key: ours[key] for key in stock if ours[key] != stock[key]} == {
        "task_type": "SparkLineageSubmitOperator",
        "_task_module": "airflow_provider_sparklineage.operators.spark_submit",
        "template_fields": [*stock["template_fields"], "reads", "writes"],
    }


def test_declarations_are_serialised_the_same_each_time():
    def declared():
        subset = DatasetSubset("s3://lake/orders", {"dt": "{{ ds }}"})
        return serialised(reads=[subset], writes=["s3://lake/revenue/dt={{ ds }}"])

    assert declared()["writes"] == ["s3://lake/revenue/dt={{ ds }}"]
    assert "s3://lake/orders" in json.dumps(declared()["reads"])
    assert json.dumps(declared()) == json.dumps(declared())


def test_a_mapped_task_is_serialised_with_what_it_is_given():
    with DAG("shop", schedule=None) as dag:
        SparkLineageSubmitOperator.partial(task_id="revenue", application="job.py").expand(
            reads=[["/lake/a"], ["/lake/b"]]
        )
    [task] = DagSerialization.to_dict(dag)["dag"]["tasks"]
    assert "reads" not in task["__var"]["partial_kwargs"]
    assert "/lake/a" in json.dumps(task["__var"]["expand_input"])


# --- making tasks ---------------------------------------------------------------------------------


def test_airflow_finds_the_converter_of_each_attribute_at_once():
    """Or that there is none: else it searches all classes, about a hundred times for each task."""

    def searched(of):
        searches = []

        class Counted(of):
            def __getattr__(self, name):  # asked when no class has the attribute
                searches.append(name)
                raise AttributeError(name)

        operator(Counted)
        return {name for name in searches if name.startswith("_convert_")}

    assert len(searched(SparkSubmitOperator)) > 50
    assert searched(SparkLineageSubmitOperator) == set()


def test_a_task_has_attributes_of_what_it_is_given_only():
    stock = set(vars(operator(SparkSubmitOperator)))
    assert set(vars(operator())) == stock
    assert set(vars(operator(strict=False, writes=["/lake/a"]))) - stock == {"strict", "writes"}


def test_a_subclass_may_have_properties_and_defaults_of_its_own():
    class Shop(SparkLineageSubmitOperator):
        strict = True

        @property
        def reads(self):
            return ["/lake/rates", *self.declared]

        @reads.setter
        def reads(self, value):
            self.declared = value or ()

    assert operator(Shop).reads == ["/lake/rates"]
    assert operator(Shop, reads=["/lake/orders"]).reads == ["/lake/rates", "/lake/orders"]
    assert operator(Shop).strict is None  # the argument's default counts


def converters(of):
    names = [f"_convert_{name}" for name in vars(operator(of))]
    return {name: getattr(of, name, None) for name in names}


def test_converters_are_those_of_the_stock_operator():
    stock = converters(SparkSubmitOperator)
    ours = converters(SparkLineageSubmitOperator)
    assert {name: ours[name] for name in stock} == stock
    assert stock["_convert_retries"] is BaseOperator._convert_retries
    assert operator(retry_delay=5).retry_delay == timedelta(seconds=5)


def test_classes_have_the_converters_of_their_own_bases():
    class Upper:
        @staticmethod
        def _convert_name(value):
            return value.upper()

    class After(SparkLineageSubmitOperator, Upper):
        pass

    class Before(Upper, SparkLineageSubmitOperator):
        pass

    class Own(SparkLineageSubmitOperator):
        def _convert_name(self, value):
            return f"{self.task_id} {value}"

    class Child(Own):
        pass

    class ShopSubmitOperator(SparkSubmitOperator, Upper):
        pass

    class Mixed(SparkLineageMixin, ShopSubmitOperator):
        pass

    classes = (SparkLineageSubmitOperator, After, Before, Own, Child, Mixed)
    named = [operator(of, name="shop").name for of in classes]
    assert named == ["shop", "SHOP", "SHOP", "revenue shop", "revenue shop", "SHOP"]
