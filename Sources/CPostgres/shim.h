#pragma once
#include <libpq-fe.h>
#include <postgres_ext.h>

// Field codes of an error (PG_DIAG_*): character macros, which Swift cannot see.
static const int ferry_diag_severity = PG_DIAG_SEVERITY_NONLOCALIZED;
static const int ferry_diag_sqlstate = PG_DIAG_SQLSTATE;
static const int ferry_diag_message = PG_DIAG_MESSAGE_PRIMARY;
static const int ferry_diag_detail = PG_DIAG_MESSAGE_DETAIL;
static const int ferry_diag_hint = PG_DIAG_MESSAGE_HINT;
static const int ferry_diag_context = PG_DIAG_CONTEXT;
static const int ferry_diag_source_function = PG_DIAG_SOURCE_FUNCTION;
static const int ferry_diag_constraint = PG_DIAG_CONSTRAINT_NAME;
