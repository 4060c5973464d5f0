import FerryProtocol

/// The SQL to capture writes row by row: a condition is checked for each, or a column names the space.
struct RowCapture {
  let sql: MirrorSQL

  private var table: MirrorTable { sql.table }
  private var parts: CapturedRowSQL { CapturedRowSQL(sql: sql) }

  var triggers: CaptureTriggers {
    let hasSpace = table.adoption?.space != nil
    return CaptureTriggers(
      count: hasSpace ? 4 : 2, countOfAll: hasSpace ? 4 : 3, statements: statements)
  }

  private var statements: [String] {
    let make = """
      CREATE OR REPLACE FUNCTION \(sql.function)() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
      SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1
      AS \(quoted(postgres: captureBody))
      """
    let truncate = sql.trigger(
      "truncate",
      "BEFORE TRUNCATE ON \(sql.target) FOR EACH STATEMENT EXECUTE FUNCTION \(sql.function)()")
    if let space = table.adoption?.space { return [make, truncate] + spaceTriggers(space) }
    return [
      make, truncate, makeTeller,
      sql.trigger(
        "row",
        "AFTER INSERT OR UPDATE OR DELETE ON \(sql.target) FOR EACH ROW "
          + "EXECUTE FUNCTION \(sql.function)()"),
      sql.trigger(
        "told",
        "AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON \(sql.target) FOR EACH STATEMENT "
          + "EXECUTE FUNCTION \(teller)()"),
    ]
  }

  /// The function that reports captured writes of a statement. It exists together with the
  /// capturing functions.
  private var teller: String { "\(MirrorSQL.ledger).capture_\(sql.mirror)_told" }

  private var makeTeller: String {
    let body = """
      BEGIN
        IF NOT (\(parts.isMirror)) THEN \(MirrorLedger.notification(of: sql.mirror)) END IF;
        RETURN NULL;
      END
      """
    return """
      CREATE OR REPLACE FUNCTION \(teller)() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
      SET search_path = pg_catalog, pg_temp AS \(quoted(postgres: body))
      """
  }

  /// The triggers of a table with rows of several spaces. The functions of the other spaces'
  /// mirrors do not run.
  private func spaceTriggers(_ space: SpaceColumn) -> [String] {
    let literal = quoted(postgres: space.value)
    let isOurs = { (row: String) in "\(row).\(quoted(Name(space.name))) = \(literal)" }
    let (old, new) = (isOurs("OLD"), isOurs("NEW"))
    return [("INSERT", new), ("UPDATE", "\(old) OR \(new)"), ("DELETE", old)].map {
      event, condition in
      sql.trigger(
        event.lowercased(),  // text: one of three words
        "AFTER \(event) ON \(sql.target) FOR EACH ROW WHEN (\(condition)) "
          + "EXECUTE FUNCTION \(sql.function)()")
    }
  }

  /// Reports a captured write, if no trigger of the statement does.
  private var tellRow: String {
    if table.adoption?.space == nil { return "" }
    return "\n  \(MirrorLedger.notification(of: sql.mirror))"
  }

  /// The body of the function that records a write. It reads the row's columns in a separate block,
  /// which writes nothing. If a name or a type has changed, the write succeeds and the mirror
  /// stops.
  private var captureBody: String {
    """
    #variable_conflict use_column
    DECLARE
      kind "char"; row_key text[]; former_key text[]; names text[] := '{}'; vals text[] := '{}';
      olds text[] := '{}'; fault text; travelled boolean := false; travels boolean := false;
    BEGIN
      \(parts.returnIfOwn)\(tellRow)
      BEGIN
    \(parts.captureTruncate)
    \(parts.readRow(new: "NEW", old: "OLD", skip: "RETURN NULL"))
      EXCEPTION WHEN OTHERS THEN
        \(MirrorStop.insertion(of: sql.mirror, table.name))
        RETURN NULL;
      END;
      IF fault IS NOT NULL THEN
    \(parts.captureFault)
      END IF;
      \(sql.head) VALUES (\(sql.mirror), \(sql.literal), kind, row_key, names, vals, olds);
      RETURN NULL;
    END
    """
  }
}
