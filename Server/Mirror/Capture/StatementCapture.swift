import FerryProtocol

/// The SQL to capture the writes of whole statements, by transition tables. A statement with many
/// rows costs a fraction of a trigger for each row.
///
/// - **Few rows** are read one by one, in a block without writes.
/// - **More rows** are captured by one statement, in a block with writes. Such a block is a
///   subtransaction with an identifier, and PostgreSQL becomes slow with many of them.
/// - **Pairs.** PostgreSQL adds each updated row to both transition tables, so equal places are one
///   row, also with another key.
/// - **Order.** A program's trigger may change a row of the statement once more. Its write is
///   captured before the statement's, and moved behind it.
struct StatementCapture {
  /// Rows read one by one.
  static let rowsMax = 32

  let sql: MirrorSQL

  private var table: MirrorTable { sql.table }
  private var parts: CapturedRowSQL { CapturedRowSQL(sql: sql) }
  private var mirror: Int64 { sql.mirror }
  /// The table's name.
  private var literal: String { quoted(postgres: table.name.text) }
  private var captured: String { "\(MirrorSQL.ledger).captured" }

  var triggers: CaptureTriggers {
    CaptureTriggers(count: 4, countOfAll: 5, statements: statements)
  }

  private var statements: [String] {
    let events = [
      ("insert", "AFTER INSERT", "REFERENCING NEW TABLE AS new_rows"),
      ("update", "AFTER UPDATE", "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows"),
      ("delete", "AFTER DELETE", "REFERENCING OLD TABLE AS old_rows"),
      ("truncate", "BEFORE TRUNCATE", ""),
    ]
    let triggers = (sql.capture.partitions?.relations ?? [sql.target]).flatMap { relation in
      [
        sql.trigger(
          "begin", of: relation,
          "BEFORE INSERT OR UPDATE OR DELETE ON \(relation) FOR EACH STATEMENT "
            + "EXECUTE FUNCTION \(beginFunction)()")
      ]
        + events.map { name, event, tables in
          sql.trigger(
            name, of: relation,
            "\(event) ON \(relation) \(tables) FOR EACH STATEMENT EXECUTE FUNCTION "
              + "\(sql.function)()")
        }
    }
    return [Self.makeBegin(beginFunction), make] + triggers
  }

  /// The beginning of the function for a table with partitions: a detached one is no part of the
  /// table, but may become one again. An update moves a row to another partition by a delete and an insert, and a
  /// trigger may leave out the insert. The pairs of rows have no order then.
  private var checkPartition: String {
    guard let partitions = sql.capture.partitions else { return "" }
    return """
      IF pg_partition_root(TG_RELID)::oid IS DISTINCT FROM \(partitions.root)::oid THEN
          UPDATE \(MirrorSQL.ledger).partitions SET compared = false
            WHERE mirror = \(mirror) AND tab = \(literal) AND part = TG_RELID AND compared;
          RETURN NULL;
        END IF;
        IF TG_OP = 'UPDATE' THEN
          BEGIN
            IF (SELECT count(*) FROM old_rows) <> (SELECT count(*) FROM new_rows) THEN
              RAISE EXCEPTION 'a trigger has left out rows that move to another partition';
            END IF;
          EXCEPTION WHEN OTHERS THEN
            \(stop)
          END;
        END IF;
      """
  }

  private var beginFunction: String { "\(MirrorSQL.ledger).capture_\(mirror)_begin" }

  /// Forgets the captured writes of triggers before the statement.
  static func makeBegin(_ function: String) -> String {
    let body = """
      BEGIN
        IF current_setting('ferry.first_' || pg_trigger_depth(), true) <> '' THEN
          PERFORM set_config('ferry.first_' || pg_trigger_depth(), '', true);
        END IF;
        RETURN NULL;
      END
      """
    return """
      CREATE OR REPLACE FUNCTION \(function)() RETURNS trigger LANGUAGE plpgsql
      SET search_path = pg_catalog, pg_temp AS \(quoted(postgres: body))
      """
  }

  /// The joins of pairs have to be merges, whatever the size of the first statement was: a plan
  /// serves all later ones. To compile a plan takes longer than the statement.
  private var make: String {
    """
    CREATE OR REPLACE FUNCTION \(sql.function)() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1
    SET jit = off SET enable_hashjoin = off SET enable_nestloop = off
    AS \(quoted(postgres: body))
    """
  }

  private var stop: String {
    """
    \(MirrorStop.insertion(of: mirror, table.name))
          RETURN NULL;
    """
  }

  private var body: String {
    """
    #variable_conflict use_column
    DECLARE
      amount bigint; new_row record; old_row record; fault text;
      former refcursor; present refcursor;
      depth bigint := pg_trigger_depth(); place bigint; nested bigint;
    BEGIN
      \(parts.returnIfOwn)
      \(checkPartition)
      IF TG_OP = 'DELETE' THEN
        SELECT count(*) INTO amount FROM (SELECT FROM old_rows LIMIT \(Self.rowsMax + 1)) r;
      ELSIF TG_OP <> 'TRUNCATE' THEN
        SELECT count(*) INTO amount FROM (SELECT FROM new_rows LIMIT \(Self.rowsMax + 1)) r;
      END IF;
      IF amount = 0 THEN RETURN NULL; END IF;
      IF NOT (\(parts.isMirror)) THEN \(MirrorLedger.notification(of: mirror)) END IF;
      IF TG_OP = 'TRUNCATE' THEN
        BEGIN
    \(parts.captureTruncate)
        EXCEPTION WHEN OTHERS THEN
          \(stop)
        END;
      END IF;
      nested := nullif(current_setting('ferry.first_' || depth, true), '');
      IF depth > 1 OR nested IS NOT NULL THEN
        place := nextval(\(quoted(postgres: captured + "_id_seq")));
      END IF;
      IF amount <= \(Self.rowsMax) THEN
    \(captureFew)
      ELSE
        BEGIN
    \(captureMany)
        EXCEPTION WHEN OTHERS THEN
          \(stop)
        END;
        IF fault IS NOT NULL THEN
    \(parts.raiseFault)
        END IF;
      END IF;
      IF nested IS NOT NULL THEN
        BEGIN
          \(reorder);
        EXCEPTION WHEN OTHERS THEN
          \(stop)
        END;
      END IF;
      FOR outer_depth IN 1 .. depth - 1 LOOP
        IF coalesce(current_setting('ferry.first_' || outer_depth, true), '') = '' THEN
          PERFORM set_config('ferry.first_' || outer_depth, coalesce(nested, place)::text, true);
        END IF;
      END LOOP;
      RETURN NULL;
    END
    """
  }

  // MARK: Few rows

  private var captureFew: String {
    """
        IF TG_OP <> 'INSERT' THEN OPEN former FOR SELECT * FROM old_rows; END IF;
        IF TG_OP <> 'DELETE' THEN OPEN present FOR SELECT * FROM new_rows; END IF;
        FOR row_number IN 1 .. amount LOOP
          DECLARE
            kind "char"; row_key text[]; former_key text[]; names text[] := '{}';
            vals text[] := '{}'; olds text[] := '{}'; fault text;
            travelled boolean := false; travels boolean := false;
          BEGIN
            IF TG_OP <> 'INSERT' THEN FETCH former INTO old_row; END IF;
            IF TG_OP <> 'DELETE' THEN FETCH present INTO new_row; END IF;
            -- An expression with both rows needs the columns of both.
            IF TG_OP = 'INSERT' THEN old_row := new_row; END IF;
            IF TG_OP = 'DELETE' THEN new_row := old_row; END IF;
            BEGIN
    \(parts.readRow(new: "new_row", old: "old_row", skip: "CONTINUE"))
            EXCEPTION WHEN OTHERS THEN
              \(stop)
            END;
            IF fault IS NOT NULL THEN
    \(parts.captureFault)
            END IF;
            \(sql.head) VALUES (\(mirror), \(literal), kind, row_key, names, vals, olds);
          END;
        END LOOP;
        IF TG_OP <> 'INSERT' THEN CLOSE former; END IF;
        IF TG_OP <> 'DELETE' THEN CLOSE present; END IF;
    """
  }

  // MARK: Many rows

  private var adopts: Bool { table.adoption != nil }

  private func fault(_ row: String) -> String {
    "CASE \(sql.faults(row).joined(separator: " ")) END"
  }

  private var captureMany: String {
    """
          IF TG_OP = 'DELETE' THEN
            \(sql.head) SELECT \(mirror), \(literal), 'D', \(sql.keyText("o.")), NULL, NULL, NULL
            FROM old_rows o;
          END IF;
    \(adopts ? "" : findFault)
          IF TG_OP = 'INSERT' AND fault IS NULL THEN
            \(captureInserted);
          END IF;
          IF TG_OP = 'UPDATE' AND fault IS NULL THEN
            \(adopts ? deleteUnfit : "")\(captureUpdated(mirror: "\(mirror)", from: pairs));
          END IF;
    """
  }

  private var findFault: String {
    """
          IF TG_OP <> 'DELETE' THEN
            SELECT f.fault INTO fault
            FROM (SELECT \(fault("n.")) AS fault FROM new_rows n OFFSET 0) f
            WHERE f.fault IS NOT NULL LIMIT 1;
          END IF;
    """
  }

  /// The SQL of a row's fault as the column `f.fault`: a company's row is recorded with it.
  var faultOfRow: String {
    "CROSS JOIN LATERAL (SELECT \(fault("n.")) AS fault OFFSET 0) f"
  }

  func unlessUnfit(_ value: String, else unfit: String) -> String {
    adopts ? "CASE WHEN f.fault IS NULL THEN \(value) ELSE \(unfit) END" : value
  }

  private var captureInserted: String {
    """
    \(sql.head) SELECT \(mirror), \(literal),
          \(unlessUnfit("'I'::\"char\"", else: "'X'::\"char\"")), \(sql.keyText("n.")),
          \(unlessUnfit(sql.columnNames, else: "'{}'")),
          \(unlessUnfit(sql.columnTexts("n."), else: "ARRAY[f.fault]")), NULL
        FROM new_rows n \(adopts ? faultOfRow : "")
    """
  }

  /// Rows by their places in both transition tables.
  var pairs: String {
    """
    (SELECT *, row_number() OVER () AS ferry_place FROM old_rows) o
          JOIN (SELECT *, row_number() OVER () AS ferry_place FROM new_rows) n
          ON n.ferry_place = o.ferry_place
    """
  }

  var isRekeyed: String {
    "ROW(\(sql.keys("n"))) IS DISTINCT FROM ROW(\(sql.keys("o")))"
  }

  /// Captures the delete of rows with another key that no device can hold.
  private var deleteUnfit: String {
    """
    \(sql.head) SELECT \(mirror), \(literal), 'D', \(sql.keyText("o.")), NULL, NULL, NULL
        FROM \(pairs) WHERE \(isRekeyed) AND (\(fault("n."))) IS NOT NULL;
            
    """
  }

  private func isChanged(_ column: MirrorColumn) -> String {
    let name = quoted(column.name)
    return column.type.compared("n.\(name)") + " IS DISTINCT FROM "
      + column.type.compared("o.\(name)")
  }

  /// Returns the SQL of a list with an element for each changed column.
  private func changed(_ element: (MirrorColumn) -> String) -> String {
    (["'{}'::text[]"]
      + table.columns.map { "CASE WHEN \(isChanged($0)) THEN ARRAY[\(element($0))]::text[] END" })
      .joined(separator: " || ")
  }

  /// Captures updated rows.
  ///
  /// - Parameters:
  ///   - mirror: the SQL of the mirror.
  ///   - isMoved: the SQL of whether a row comes from another space; `nil` if none does.
  ///   - isAdopting: the SQL of whether a row may not be in the space yet; `nil` as for the mirror.
  ///   - condition: of the rows; `nil` for all.
  func captureUpdated(
    mirror: String, from pairs: String, isMoved: String? = nil, isAdopting: String? = nil,
    where condition: String? = nil
  ) -> String {
    let texts = { (row: String) in
      { (column: MirrorColumn) in column.type.encoded("\(row).\(quoted(column.name))") }
    }
    // As the row by row does: a key, a whole row, or the changed columns.
    let isUnfit = "(\(fault("o."))) IS NOT NULL"
    let isNew = [isMoved, isAdopting].compactMap(\.self) + [isUnfit]
    let isWhole =
      adopts
      ? (sql.isAdopting && isAdopting == nil ? "true" : isNew.joined(separator: " OR ")) : "false"
    let hasOtherKey = isRekeyed + (isMoved.map { " AND NOT (\($0))" } ?? "")
    let value = { (rekeyed: String, whole: String, changed: String, unfit: String) in
      let fit =
        "CASE WHEN \(hasOtherKey) THEN \(rekeyed) WHEN \(isWhole) THEN \(whole) "
        + "ELSE \(changed) END"
      return unlessUnfit(fit, else: unfit)
    }
    let kinds = value("'K'::\"char\"", "'I'", "'U'", "'X'")
    let names = value(
      sql.columnNames, sql.columnNames, changed { quoted(postgres: $0.name.text) }, "'{}'")
    let vals = value(
      sql.columnTexts("n."), sql.columnTexts("n."), changed(texts("n")), "ARRAY[f.fault]")
    let olds = value(sql.keyText("o."), "NULL", changed(texts("o")), "NULL")
    let isCaptured =
      ([isRekeyed, isWhole] + table.columns.map(isChanged)
      + (adopts ? ["f.fault IS NOT NULL"] : []))
      .joined(separator: " OR ")
    return """
      \(sql.head) SELECT \(mirror), \(literal), \(kinds), \(sql.keyText("n.")),
            \(names),
            \(vals),
            \(olds)
          FROM \(pairs) \(adopts ? faultOfRow : "")
          WHERE \(condition.map { "\($0) AND " } ?? "")(\(isCaptured)) ORDER BY n.ferry_place
      """
  }

  // MARK: Order

  /// Moves the writes of triggers to the statement's rows behind those of the statement. A trigger
  /// before an insert may have deleted a row with the same key: its writes stay.
  private var reorder: String {
    let isOfTable = "c.mirror = \(mirror) AND c.xid = pg_current_xact_id() AND c.tab = \(literal)"
    let exists = "EXISTS (SELECT FROM \(sql.target) t WHERE ROW(\(sql.keyColumns)) = "
    return """
      WITH own AS MATERIALIZED (
            SELECT c.kind, c.key, c.olds FROM \(captured) c WHERE \(isOfTable) AND c.id > place),
          keys AS (SELECT key FROM own UNION SELECT olds FROM own WHERE kind = 'K'),
          inner_writes AS MATERIALIZED (
            SELECT c.* FROM \(captured) c
            WHERE \(isOfTable) AND c.id >= nested AND c.id < place
              AND (c.key IN (SELECT key FROM keys) OR c.kind = 'K' AND c.olds IN (SELECT key FROM keys))),
          replaced AS (
            SELECT d.key FROM inner_writes d JOIN own w ON w.key = d.key
            WHERE d.kind = 'D' AND w.kind IN ('I', 'X') AND \(exists)\(sql.row("d.key")))
            -- Rows written before a cascade of the statement changed or deleted them.
            UNION SELECT w.key FROM own w WHERE w.kind = 'D' AND NOT \(exists)\(sql.row("w.key")))
            UNION SELECT d.key FROM inner_writes d JOIN own w ON w.key = d.key
            WHERE d.kind = 'I' AND w.kind = 'U' AND NOT EXISTS (
              SELECT FROM inner_writes x WHERE x.kind = 'D' AND x.key = d.key)),
          moved AS (
            DELETE FROM \(captured) c USING inner_writes i WHERE \(isOfTable) AND c.id = i.id
              AND c.key NOT IN (SELECT key FROM replaced) RETURNING c.*)
          INSERT INTO \(captured)(mirror, xid, at, tab, kind, key, names, vals, olds, tries)
          SELECT mirror, xid, at, tab, kind, key, names, vals, olds, tries FROM moved ORDER BY id
      """
  }
}
