"""Values that are the same in all rows of a batch, and other ones in the next."""

from pyspark.sql import Column
from pyspark.sql import functions as F


def by_reference(value: Column) -> Column:
    """The same literal, but referred to by the code that Spark generates instead of written into it.

    Spark keeps generated code by its text, and writes numbers and times into that. With the number of a batch in it,
    all that writes rows would be compiled anew in each batch, by Java first and by the JVM's compilers then. An array
    is referred to, and Spark does not look up beforehand what is at a place that only a task knows.
    """
    nought = F.spark_partition_id() * 0
    return F.get(F.array(value), nought)
