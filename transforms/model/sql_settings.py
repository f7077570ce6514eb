"""Lists the settings of Spark SQL: which are pinned, which change no value, and which are refused.

A value of a lake is computed again whenever its row is looked at, on another machine and by another user, and must be
the same. So whatever changes what an expression, a stored value or a file's value means is not the user's to set: not
in the configuration, and not in a `spark-defaults.conf` or a session that runs already. A test holds this file against
Spark's own list: a setting that is new in a version of Spark belongs nowhere until somebody has looked at it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

Filed = Literal["pinned", "harmless", "refused"]

PREFIX = "spark.sql."

PINNED: Mapping[str, str] = MappingProxyType(
    {
        # An expression is what the configuration says: by default '${env:HOME}' in it is replaced before it is parsed.
        "spark.sql.variable.substitute": "false",
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.parser.quotedRegexColumnNames": "false",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.ansi.enforceReservedKeywords": "false",
        # Within a lambda, as `transforms.model.expressions.attempt` has one, Spark 4.2 takes a name for an alias beside
        # it before it takes it for the column of the row.
        "spark.sql.lateralColumnAlias.enableImplicitResolution": "false",
        # The function that a name calls is Spark's own.
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.defaultCatalog": "spark_catalog",
        "spark.sql.functionResolution.sessionOrder": "second",
        "spark.sql.path.enabled": "false",
        # What a value is must neither depend on the machine nor go wrong in silence.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "false",
        "spark.sql.storeAssignmentPolicy": "ANSI",
        "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
        "spark.sql.decimalOperations.allowPrecisionLoss": "true",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        "spark.sql.function.concatBinaryAsString": "false",
        "spark.sql.function.eltOutputAsString": "false",
        "spark.sql.icu.caseMappings.enabled": "true",
        "spark.sql.chunkBase64String.enabled": "true",
        "spark.sql.charAsVarchar": "false",
        "spark.sql.preserveCharVarcharTypeInfo": "false",
        "spark.sql.readSideCharPadding": "true",
        "spark.sql.jsonGenerator.ignoreNullFields": "true",
        # What stands in a file is read, whole, as it was written.
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.parquet.binaryAsString": "false",
        "spark.sql.parquet.int96AsTimestamp": "true",
        "spark.sql.parquet.int96TimestampConversion": "false",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
        # The default, INT96, is deprecated and has no statistics to skip row groups by.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
)
"""Settings that have this value in every session, whoever says otherwise.

Most have it by default; then a lake made before they were pinned was made with the same values. Whoever adds or changes
one looks at `orchestration.lake_state.expression_version`.
"""


def _names(words: str) -> frozenset[str]:
    return frozenset(PREFIX + word for word in words.split())


_HARMLESS = _names("""
    adaptive.* addPartitionInBatch.size artifact.* autoBroadcastJoinThreshold avro.compression.codec avro.deflate.level
    avro.filterPushdown.* avro.xz.level avro.zstandard.* binaryOutputStyle broadcastExchange.* broadcastTimeout
    cache.serializer cartesianProductExec.* catalog.* cbo.* classic.* codegen.* columnVector.*
    constraintPropagation.enabled dataFrameQueryContext.enabled dataframeCache.logLevel debug.maxToStringFields
    defaultCacheStorageLevel defaultSizeInBytes error.messageFormat event.truncate.length exchange.reuse
    execution.arrow.compression.*
    execution.arrow.localRelationThreshold execution.arrow.max* execution.broadcastHashJoin.*
    execution.fastFailOnFileFormatOutput execution.interruptOnCancel execution.rangeExchange.*
    execution.removeRedundant* execution.replaceHashWithSortAgg execution.reuseSubquery execution.sortBeforeRepartition
    execution.topKSortFallbackThreshold execution.useObjectHashAggregateExec execution.usePartitionEvaluator
    expressionTreeChangeLog.* extendedExplainProviders extensions extensions.* filesourceTableRelationCacheSize
    files.maxPartitionBytes files.maxPartitionNum files.maxRecordsPerFile files.minPartitionNum files.openCostInBytes
    inMemoryColumnarStorage.* inMemoryTableScanStatistics.* join.preferSortMergeJoin leafNodeDefaultParallelism
    lightweightPlanChangeValidation limit.* maven.additionalRemoteRepositories maxBroadcastTableSize
    maxConcurrentOutputFileWriters maxMetadataStringLength maxPlanStringLength maxSinglePartitionBytes
    metadataCacheTTLSeconds nameResolutionLog.* objectHashAggregate.* optimizer.dynamicPartitionPruning.*
    optimizer.expressionProjectionCandidateLimit optimizer.inSet* optimizer.mapLookupHashThreshold
    optimizer.maxIterations optimizer.runtime.* optimizer.runtimeFilter.* optimizer.windowGroupLimitThreshold
    orc.aggregatePushdown orc.columnarReaderBatchSize orc.columnarWriterBatchSize orc.compression.codec
    orc.enableNestedColumnVectorizedReader orc.enableVectorizedReader orc.filterPushdown parquet.columnarReaderBatchSize
    parquet.compression.codec parquet.enableNestedColumnVectorizedReader parquet.enableVectorizedReader
    parquet.filterPushdown parquet.filterPushdown.* parquet.output.committer.class parquet.pushdown.*
    parquet.recordLevelFilter.enabled parser.manageParserCaches parser.parserDfa* planChangeLog.* planChangeValidation
    queryExecutionListeners redaction.* requireAllClusterKeys* resultQueryStage.* scriptTransformation.*
    session.localRelation* sessionWindow.* shuffle.* shuffleDependency.* shuffleExchange.* shuffledHashJoinFactor sort.*
    sortMergeJoinExec.* sources.commitProtocolClass sources.fileCompressionFactor sources.ignoreDataLocality
    sources.outputCommitterClass sources.parallelPartitionDiscovery.* sources.useListFilesFileSystemList
    stackTracesInDataFrameContext statistics.* subexpressionElimination.* subquery.* ui.* unionOutputPartitioning
    warehouse.dir window.segmentTree.* windowExec.*
""")
"""How a query is planned, run, shown or logged: the rows are the same."""
_UNUSED = _names("""
    bucketing.* catalogImplementation cli.* connect.* cteRecursion* globalTempDatabase hive.* pipelines.*
    pivotMaxValues planner.pythonExecution.memory python.* pyspark.* repl.* scripting.* sources.bucketing.*
    sources.v2.* streaming.* thriftServer.* thriftserver.* transposeMaxValues
    execution.pyspark.udf.* execution.python.* execution.pythonUDF.* execution.pythonUDTF.*
    execution.pyspark.python execution.pandas.udf.*
""")
"""Of parts of Spark that compute nothing here: formats and sources, servers, streaming, Python functions, Hive.

At most a metastore is used, where tables are registered."""
_REFUSED = _names("""
    allowNamedFunctionArguments alwaysInlineCommonExpr analyzer.* ansi.* assumeAnsiFalseIfNotPersisted.enabled avro.*
    catalog.spark_catalog.* collation.* columnNameOfCorruptRecord crossJoin.enabled csv.* cteRelationDefMaxRows.enabled
    dataSource.* datetime.java8API.enabled debug defaultColumn.* defaultPath defaultUrlStreamHandlerFactory.enabled
    dropTableOnView.enabled enforceTypeCoercionBeforeUnionDeduplication.enabled execution.arrow.*
    execution.datasources.* execution.pandas.* execution.pyspark.* execution.pythonUDF.arrow.legacy.* fileSource.*
    files.* function.* geospatial.enabled groupByAliases groupByOrdinal insertIntoReplace*
    insertNestedTypeCoercion.enabled json.* jsonGenerator.* lateralColumnAlias.* lazySetOperatorOutput.enabled legacy.*
    listagg.* mapZipWithUsesJavaCollections mergeNestedTypeCoercion.enabled operatorPipeSyntaxEnabled
    optimizeNullAwareAntiJoin optimizer.* orc.* orderByOrdinal orderingAwareLimitOffset parquet.* parser.*
    prioritizeOrdinalResolutionInSort.enabled pyspark.infer* pyspark.legacy.* retainGroupColumns
    runCollationTypeCastsBeforeAliasAssignment.enabled runSQLOnFiles selfJoinAutoResolveAmbiguity sources.*
    stableDerivedColumnAlias.enabled timeTravel* timeType.enabled truncateTable.* tvf.* types.framework.enabled udt.*
    useCommonExprIdForAlias variant.* view.* xml.*
""")
"""What changes, or may change, a value, a type or a name, or which sentences are understood: Spark's defaults stand."""


def filed(name: str) -> Filed | None:
    """Under what a setting of Spark SQL is filed; the pattern that says most of its name decides. None: nowhere."""
    if name in PINNED:
        return "pinned"
    found = {_match(name, names): kind for names, kind in _LISTS}
    return found[max(found)] if max(found) else None


def _match(name: str, patterns: frozenset[str]) -> int:
    """How much of a name the longest pattern says; 0 where none fits. A whole name says more than its beginning."""
    if name in patterns:
        return len(name) + 1
    return max((len(p) - 1 for p in patterns if p.endswith("*") and name.startswith(p[:-1])), default=0)


_LISTS: tuple[tuple[frozenset[str], Filed], ...] = (
    (_HARMLESS, "harmless"),
    (_UNUSED, "harmless"),
    (_REFUSED, "refused"),
)
