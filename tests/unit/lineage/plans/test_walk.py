"""Plans that are deep, wide, damaged or not known: followed in bounds, and never guessed."""

from __future__ import annotations

import zlib

import pytest

from airflow_provider_sparklineage.lineage.columns.plans.commands import (
    UnreadablePlanError,
    planned_columns,
)
from airflow_provider_sparklineage.lineage.columns.plans.expressions import (
    children,
    conjuncts,
    kind,
)
from airflow_provider_sparklineage.model.allowance import SpentError, Stage
from tests.allowances import working
from tests.unit.lineage.plans.plans import described, write_plan


def node(kind, arity=0, /, **fields):
    return {"class": f"org.apache.spark.sql.{kind}", "num-children": arity, **fields}


def attribute(number, name):
    return node("AttributeReference", name=name, dataType="long", exprId={"id": number})


def alias(number, name, *expression):
    return [node("Alias", 1, name=name, exprId={"id": number}), *expression]


def orders(*names, start=0):
    """Read columns of a table; the first one makes it the orders."""
    columns = [[attribute(start + at, name)] for at, name in enumerate(("order_id", *names))]
    return node("LogicalRelation", output=columns)


def project(*columns):
    return node("Project", 1, projectList=list(columns))


ID = attribute(0, "order_id")


def of(*plan, columns=()):
    return described(planned_columns(write_plan(list(plan), *columns)))


def test_a_plan_of_ten_thousand_operators_is_followed():
    step = alias(0, "order_id", node("Add", 2), ID, node("Literal", value="1", dataType="long"))
    plan = [project(step) for _ in range(10_000)]
    assert of(*plan, orders()) == "order_id <- orders.order_id TRANSFORMATION"


def test_an_expression_of_ten_thousand_operands_is_followed():
    terms = [node("Add", 2) for _ in range(10_000)] + [ID] * 10_001
    assert of(project(alias(9, "all", *terms)), orders()) == "all <- orders.order_id TRANSFORMATION"


def test_a_condition_of_ten_thousand_parts_is_split():
    tree = [node("And", 2) for _ in range(10_000)] + [ID] * 10_001
    assert conjuncts(tree) == [[ID]] * 10_001


def test_a_thousand_joins_are_followed():
    count = 1000
    joins = [node("Join", 2, joinType="Inner") for _ in range(count)]
    leaves = [orders("a", "b", start=at * 3) for at in range(count + 1)]
    columns = project([attribute(0, "order_id")], [attribute(count * 3 + 2, "b")])
    assert (
        of(columns, *joins, *leaves)
        == "order_id <- orders.order_id IDENTITY\nb <- orders.b IDENTITY"
    )


@pytest.mark.parametrize("looks", range(3))
def test_following_ends_when_the_time_is_up(looks):
    plan = [project([ID]) for _ in range(5000)]
    with pytest.raises(SpentError):
        planned_columns(write_plan([*plan, orders()]), working(looks, Stage.COLUMNS))


def test_without_time_nothing_is_followed():
    with pytest.raises(SpentError):
        planned_columns(write_plan([project([ID])] * 1000 + [orders()]), working(0, Stage.COLUMNS))


def test_what_is_not_known_hands_on_its_columns_and_may_choose_rows():
    assert of(node("SomethingNew", 1), orders()) == (
        "order_id <- orders.order_id IDENTITY\n* is not all known"
    )


def test_a_column_that_nothing_explains_is_not_known():
    new = node("SomethingNew", 1, output=[[ID], [attribute(7, "made")]])
    assert of(project([ID], alias(8, "x", attribute(7, "made"))), new, orders()) == (
        "order_id <- orders.order_id IDENTITY\nx is not all known\n* is not all known"
    )


def test_a_relation_that_is_no_dataset_leaves_its_columns_unknown():
    plan = write_plan([orders()])
    unbound = plan._replace(relations=((None, (0,)),))
    assert described(planned_columns(unbound)) == "order_id is not all known"


def test_an_expression_that_is_not_known_is_made_of_its_operands():
    made = alias(9, "x", node("SomethingNew", 2), ID, ID)
    assert of(project(made), orders()) == "x <- orders.order_id TRANSFORMATION"


def test_a_list_that_spark_does_not_write_is_not_taken_for_an_empty_one():
    aggregate = node("Aggregate", 1, groupingExpressions=None, aggregateExpressions=[[ID]])
    assert of(aggregate, orders()) == ("order_id <- orders.order_id IDENTITY\n* is not all known")


def test_columns_have_the_names_of_the_target():
    plan = project([attribute(1, "a")], [ID])
    assert of(plan, orders("a"), columns=("x", "y")) == (
        "x <- orders.a IDENTITY\ny <- orders.order_id IDENTITY"
    )


def test_columns_of_another_number_are_found_by_name_or_not_known():
    assert of(project([ID]), orders(), columns=("order_id", "more")) == (
        "order_id <- orders.order_id IDENTITY\nmore is not all known"
    )


def test_what_is_written_to_partitions_is_sorted_by_them():
    command = node("InsertIntoHadoopFsRelationCommand", 1, query=0, partitionColumns=[[ID]])
    assert of(command, orders()) == (
        "order_id <- orders.order_id IDENTITY\n* <- orders.order_id SORT"
    )


@pytest.mark.parametrize(
    "plan",
    [
        [node("Project", 1)],
        [node("Join", 2), orders()],
        [orders(), orders()],
        [node("Generate", 1, generator=5), orders(), orders()],
    ],
    ids=["no child", "one child of two", "two roots", "more than a tree"],
)
def test_what_is_no_tree_is_reported(plan):
    with pytest.raises(UnreadablePlanError, match="The plan of a write to target cannot be read"):
        of(*plan)


@pytest.mark.parametrize("plan", [[], {}, 1, "x", [1], [[]], [{"class": 1}]])
def test_other_json_says_nothing(plan):
    assert described(planned_columns(write_plan(plan))) == "* is not all known"


@pytest.mark.parametrize("damage", [b"", b"{", b"[" * 100_000, b"\xff"])
def test_what_is_no_json_is_reported(damage):
    plan = write_plan([])._replace(compressed=zlib.compress(damage))
    with pytest.raises(UnreadablePlanError):
        planned_columns(plan)


FIELDS = (
    *("projectList", "condition", "groupingExpressions", "aggregateExpressions", "order"),
    *("windowExpressions", "generator", "generatorOutput", "projections", "output", "keys"),
    *("query", "plan", "exprId", "children", "matchedInstructions", "matchedClauses", "right"),
)
KINDS = (
    *("Project", "Aggregate", "Filter", "Join", "LateralJoin", "Sort", "Window", "Generate"),
    *("Expand", "Union", "Except", "Deduplicate", "MergeRows", "CTERelationRef", "WithCTE"),
    *("MergeIntoCommand", "UpdateCommand", "DeleteCommand", "MapInPandas"),
)
DAMAGED = (
    *(1, "x", [], {}, [[]], [1], [[[1]]], [[node("If")]], [[node("WindowExpression")]]),
    *([node("CaseWhen", 1), ID], [[node("InSubquery")]], [[node("Exists", plan=[{}])]]),
    *([[node("ScalarSubquery", plan=[{}])]], [[node("AggregateExpression")]]),
)


@pytest.mark.parametrize("name", KINDS)
def test_damaged_fields_are_no_columns_and_no_other_error(name):
    for damaged in DAMAGED:
        for field in FIELDS:
            plan = [node(name, 1, **{field: damaged}), orders()]
            try:
                described(planned_columns(write_plan(plan)))
            except UnreadablePlanError:
                continue


def test_a_command_below_common_tables_writes_their_columns():
    """The observer puts the plan of a checkpoint before a command in this way."""
    made = project(alias(3, "twice", node("Add", 2), ID, ID))
    chosen = node("Filter", 1, condition=[ID])
    below = node("CTERelationRef", cteId="frame-0", output=[[attribute(3, "twice")]])
    again = node("CTERelationRef", cteId="frame-0", output=[[attribute(5, "other")]])
    unknown = node("CTERelationRef", cteId="frame-9", output=[[attribute(6, "lost")]])
    columns = project(*([attribute(at, "x")] for at in (3, 5, 6)))
    plan = [
        node("WithCTE", 2),
        *(node("CTERelationDef", 1, id="frame-0"), made, chosen, orders()),
        *(node("InsertIntoHadoopFsRelationCommand", 1, query=0), columns),
        *(node("Join", 2), node("Join", 2), below, again, unknown),
    ]
    assert of(*plan, columns=("a", "b", "c")) == (
        "a <- orders.order_id TRANSFORMATION\nb <- orders.order_id TRANSFORMATION\n"
        "c is not all known\n* <- orders.order_id FILTER"
    )


def literal(value):
    return node("Literal", value=value, dataType="string")


def test_each_column_of_a_stack_is_made_of_its_own_values():
    stack = [node("Stack", 5), literal("2"), literal("a"), ID, literal("b"), attribute(1, "user")]
    output = [[attribute(7, "name")], [attribute(8, "value")]]
    generate = node("Generate", 1, generator=stack, outer=False, generatorOutput=output)
    columns = project(*([attribute(at, name)] for at, name in ((7, "name"), (8, "value"))))
    assert of(columns, generate, orders("user")) == (
        "value <- orders.order_id TRANSFORMATION, orders.user TRANSFORMATION\n"
        "name is made of literal"
    )


@pytest.mark.parametrize("is_inline", [True, False])
def test_fields_of_structs_in_a_list_are_made_of_their_own_values(is_inline):
    struct = [node("CreateNamedStruct", 4), literal("x"), ID, literal("y"), attribute(1, "user")]
    listed = [node("CreateArray", 2), *struct, *struct]
    if is_inline:
        names = [[attribute(7, "x")], [attribute(8, "y")]]
        generator, taken = [node("Inline", 1), *listed], names
    else:
        names = [[attribute(9, "s")]]
        generator = [node("Explode", 1), *listed]
        fields = (alias(at, "xy"[at], node("GetStructField", 1, ordinal=at)) for at in (0, 1))
        taken = [[*field, attribute(9, "s")] for field in fields]
    generate = node("Generate", 1, generator=generator, outer=True, generatorOutput=names)
    assert of(project(*taken), generate, orders("user")) == (
        "x <- orders.order_id IDENTITY\ny <- orders.user IDENTITY"
    )


def test_children_stand_after_their_parent():
    tree = [node("Join", 2), node("Filter", 1), orders(), orders()]
    assert children(tree) == [[1, 3], [2], [], []]
    assert kind(tree[0]) == "Join"


def text(value):
    return node("Literal", value=value, dataType="string")


def a_struct(*fields):
    """Make the expression of a struct, from its fields: a name, and the expression of its value."""
    parts = [part for name, *value in fields for part in (text(name), *value)]
    return [node("CreateNamedStruct", 2 * len(fields)), *parts]


def field(at, *struct):
    return [node("GetStructField", 1, ordinal=at, name="named"), *struct]


A, B = attribute(1, "a"), attribute(2, "b")
PLUS = [node("Add", 2), B, node("Literal", value="1", dataType="long")]


@pytest.mark.parametrize(
    ("expression", "sources"),
    [
        (field(0, *a_struct(("x", A), ("y", *PLUS))), "orders.a IDENTITY"),
        (field(1, *a_struct(("x", A), ("y", *PLUS))), "orders.b TRANSFORMATION"),
        (
            field(0, *field(1, *a_struct(("x", A), ("y", *a_struct(("z", B), ("w", A)))))),
            "orders.b IDENTITY",
        ),
        (
            field(0, node("Something", 1), *a_struct(("x", A), ("y", B))),
            "orders.a TRANSFORMATION, orders.b TRANSFORMATION",
        ),
        (
            field(2, *a_struct(("x", A), ("y", B))),
            "orders.a TRANSFORMATION, orders.b TRANSFORMATION",
        ),
    ],
    ids=["column", "expression", "nested", "of something else", "not there"],
)
def test_a_field_of_a_struct_has_the_sources_of_that_field(expression, sources):
    assert of(project(alias(9, "c", *expression)), orders("a", "b")) == f"c <- {sources}"


def test_a_struct_keeps_its_fields_through_projections_and_unions():
    made = [project([attribute(5, "s")]), project(alias(5, "s", *a_struct(("x", A), ("y", B))))]
    other = [project(alias(6, "s", *a_struct(("x", B), ("y", B)))), orders("a", "b")]
    union = node("Union", 2, output=[[attribute(5, "s")]])
    plan = [project(alias(9, "c", *field(0, attribute(5, "s")))), union, *made]
    assert of(*plan, orders("a", "b"), *other) == "c <- orders.a IDENTITY, orders.b IDENTITY"


# --- recursion ------------------------------------------------------------------------------------


def recursion(*names, step, loops=1, **fields):
    """Make a recursion over columns, whose recursive part has other columns in their places.

    :param step: the numbers of the columns that the recursive part puts in the place of each
    :param fields: others of the node
    """
    columns = [attribute(at, name) for at, name in enumerate(("order_id", *names))]
    loop = node("UnionLoopRef", loopId=loops, output=[[column] for column in columns])
    part = project(*([columns[number]] for number in step))
    union = node("UnionLoop", 2, id=loops, anchor=0, recursion=1, **fields)
    return [union, orders(*names), part, loop]


@pytest.mark.parametrize(
    ("step", "lines"),
    [
        ((0, 1), "order_id <- orders.order_id IDENTITY\na <- orders.a IDENTITY"),
        (
            (1, 0),
            "order_id <- orders.a IDENTITY, orders.order_id IDENTITY\n"
            "a <- orders.a IDENTITY, orders.order_id IDENTITY",
        ),
        (
            (0, 0),
            "order_id <- orders.order_id IDENTITY\n"
            "a <- orders.a IDENTITY, orders.order_id IDENTITY",
        ),
    ],
    ids=["as they are", "swapped", "one in both places"],
)
def test_a_recursion_is_followed_until_nothing_is_added(step, lines):
    assert of(*recursion("a", step=step)) == lines


def test_the_rows_of_a_recursion_may_have_ids_of_their_own():
    loop = recursion("a", step=(0, 1), outputAttrIds=[{"id": 8}, {"id": 9}])
    assert of(project(alias(7, "x", attribute(9, "a"))), *loop) == "x <- orders.a IDENTITY"


def test_a_column_that_moves_on_at_each_step_gets_to_the_last_place():
    names = [f"c{number}" for number in range(30)]
    *_, last = of(*recursion(*names, step=(0, *range(30)))).splitlines()
    assert last.count("IDENTITY") == 31


def test_a_recursive_part_with_other_columns_is_not_known():
    loop = recursion("a", step=(0,))
    assert of(*loop) == (
        "order_id <- orders.order_id IDENTITY\na <- orders.a IDENTITY\n"
        "a is not all known\norder_id is not all known"
    )


def test_following_a_recursion_ends_when_the_time_is_up():
    plan = recursion(*(f"c{number}" for number in range(200)), step=(0, *range(200)))
    with pytest.raises(SpentError):
        planned_columns(write_plan(plan), working(1, Stage.COLUMNS))


def test_the_nearest_rows_are_joined_by_their_rank():
    join = node("NearestByJoin", 2, rankingExpression=[node("Subtract", 2), ID, attribute(5, "b")])
    assert of(project([attribute(5, "b")]), join, orders(), orders("b", start=4)) == (
        "b <- orders.b IDENTITY\n* <- orders.b JOIN, orders.order_id JOIN"
    )
