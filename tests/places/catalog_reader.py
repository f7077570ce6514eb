"""Prints what a catalog says of its tables, as somebody who reads them asks it: `catalog_reader.py CONF TABLE...`."""

import json
import sys

from lakejoin.storage.spark.session import start_session

conf, names = json.loads(sys.argv[1]), sys.argv[2:]
spark = start_session("local[1]", conf)
told = {}
for name in names:
    schema, _, table = name.rpartition(".")
    described = {row[0]: (row[1], row[2]) for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()}
    told[name] = {
        "listed": table in [row["tableName"] for row in spark.sql(f"SHOW TABLES IN {schema}").collect()],
        "rows": spark.table(name).count(),
        "comment": described.get("Comment", ("", ""))[0],
        "columns": {column: comment for column, (_, comment) in described.items() if comment},
        "owner": described["Owner"][0],
        "location": described["Location"][0],
    }
sys.stdout.write(f"{json.dumps(told)}\n")
