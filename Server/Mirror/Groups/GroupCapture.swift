import FerryProtocol

/// The SQL to capture the writes to a table for all mirrors of a group, by one set of triggers for
/// statements; see ``StatementCapture``.
///
/// - **Mirrors.** Two functions have the mirrors of the spaces. They are made again for each new
///   mirror. A transaction sees a new function whatever its snapshot of the tables is.
/// - **Moved rows** are deleted in one space, and inserted in another one.
/// - **Own writes.** A step's rows are left out for the step's mirror alone.
struct GroupCapture {
  /// A table with a space column; the mirror is any of the group.
  let sql: MirrorSQL
  let group: Int64
  let space: SpaceColumn

  private var table: MirrorTable { sql.table }
  private var literal: String { sql.literal }
  private var captured: String { "\(MirrorSQL.ledger).captured" }

  static func function(_ group: Int64, _ table: Name) -> String {
    "\(MirrorSQL.ledger).capture_group_\(group)_\(MirrorSQL.digest(table.text))"
  }

  var function: String { Self.function(group, table.name) }
  private var beginFunction: String { "\(MirrorSQL.ledger).capture_group_\(group)_begin" }

  // MARK: Mirrors

  /// Returns the statements to make the functions with the mirrors of a table's spaces.
  ///
  /// - Parameters:
  ///   - function: the capturing function.
  ///   - spaces: a JSON object with the mirror of each value; negative if its rows may not be in the
  ///     space yet.
  ///   - mirrors: an array with the mirrors.
  static func members(of function: String, spaces: String, mirrors: String) -> [String] {
    let (spaces, mirrors) = (quoted(postgres: spaces), quoted(postgres: mirrors))
    let value = "SELECT (\(spaces)::pg_catalog.jsonb OPERATOR(pg_catalog.->>) $1)::pg_catalog.int8"
    let all = "SELECT \(mirrors)::pg_catalog.int8[]"
    return [
      """
      CREATE OR REPLACE FUNCTION \(function)_spaces(pg_catalog.text) RETURNS pg_catalog.int8
      LANGUAGE sql IMMUTABLE AS \(quoted(postgres: value))
      """,
      """
      CREATE OR REPLACE FUNCTION \(function)_members() RETURNS pg_catalog.int8[]
      LANGUAGE sql IMMUTABLE AS \(quoted(postgres: all))
      """,
    ]
  }

  /// The SQL of the mirror of a row; NULL if it does not travel.
  private func member(_ row: String) -> String {
    let mirror = "\(function)_spaces(\(row).\(quoted(Name(space.name)))::text)"
    var whole = sql
    whole.table.adoption?.space = nil
    guard let condition = whole.holds(row) else { return mirror }
    // The condition may fail for rows of other spaces.
    return """
      CASE WHEN \(mirror) IS NOT NULL THEN CASE WHEN \(condition) THEN \(mirror) END END
      """
  }

  private var members: String { "\(function)_members()" }

  // MARK: Statements

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
    let make = """
      CREATE OR REPLACE FUNCTION \(function)() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
      SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1
      SET jit = off SET enable_hashjoin = off SET enable_nestloop = off
      AS \(quoted(postgres: body))
      """
    let begin = sql.trigger(
      "begin",
      "BEFORE INSERT OR UPDATE OR DELETE ON \(sql.target) FOR EACH STATEMENT "
        + "EXECUTE FUNCTION \(beginFunction)()")
    return [StatementCapture.makeBegin(beginFunction), make, begin]
      + events.map { name, event, tables in
        sql.trigger(
          name,
          "\(event) ON \(sql.target) \(tables) FOR EACH STATEMENT EXECUTE FUNCTION \(function)()")
      }
  }

  private var notify: String { MirrorLedger.notification(of: -group) }

  /// Stops all mirrors of the table.
  private var stop: String {
    """
    INSERT INTO \(MirrorSQL.ledger).stops(mirror, tab, reason, definition)
          SELECT m, \(literal), SQLERRM, \(MirrorStop.isAboutDefinition) FROM unnest(\(members)) m
          WHERE NOT EXISTS (SELECT FROM \(MirrorSQL.ledger).stops s
            WHERE s.mirror = m AND s.tab = \(literal));
          \(notify)
          RETURN NULL;
    """
  }

  /// The condition for writes of a mirror; see ``CapturedRowSQL/isMirror``.
  private static let isMirror = """
    (current_setting('ferry.mirror', true) ~ '^[0-9]+$'
        AND pg_has_role(session_user, current_user, 'MEMBER'))
    """

  private var body: String {
    """
    #variable_conflict use_column
    DECLARE
      amount bigint; new_row record; old_row record; own_mirror bigint; has_captured boolean := false;
      former refcursor; present refcursor;
      depth bigint := pg_trigger_depth(); place bigint; nested bigint;
    BEGIN
      IF TG_OP = 'DELETE' THEN
        SELECT count(*) INTO amount FROM (SELECT FROM old_rows LIMIT \(StatementCapture.rowsMax + 1)) r;
      ELSIF TG_OP <> 'TRUNCATE' THEN
        SELECT count(*) INTO amount FROM (SELECT FROM new_rows LIMIT \(StatementCapture.rowsMax + 1)) r;
      END IF;
      IF amount = 0 THEN RETURN NULL; END IF;
      IF \(Self.isMirror) THEN
        IF TG_OP = 'TRUNCATE' THEN RETURN NULL; END IF;
        IF depth = 1 AND current_setting('ferry.table', true) = TG_RELID::text THEN
          own_mirror := current_setting('ferry.mirror');
        END IF;
      END IF;
      nested := nullif(current_setting('ferry.first_' || depth, true), '');
      IF depth > 1 OR nested IS NOT NULL THEN
        place := nextval(\(quoted(postgres: captured + "_id_seq")));
      END IF;
      IF amount <= \(StatementCapture.rowsMax) THEN
    \(captureFew)
      ELSE
        BEGIN
    \(captureMany)
        EXCEPTION WHEN OTHERS THEN
          \(stop)
        END;
      END IF;
      IF has_captured THEN \(notify) END IF;
      IF TG_OP = 'TRUNCATE' THEN RETURN NULL; END IF;
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

  private func fault(_ row: String) -> String {
    "(CASE \(sql.faults(row).joined(separator: " ")) END)"
  }

  private var captureFew: String {
    """
        BEGIN
          IF TG_OP <> 'INSERT' THEN
            OPEN former FOR SELECT *, \(member("o")) AS ferry_member FROM old_rows o;
          END IF;
          IF TG_OP <> 'DELETE' THEN
            OPEN present FOR SELECT *, \(member("n")) AS ferry_member FROM new_rows n;
          END IF;
        EXCEPTION WHEN OTHERS THEN
          \(stop)
        END;
        FOR row_number IN 1 .. amount LOOP
          DECLARE
            kind "char"; row_key text[]; former_key text[]; left_key text[]; names text[] := '{}';
            vals text[] := '{}'; olds text[] := '{}'; fault text;
            source_mirror bigint; target_mirror bigint; travelled boolean; is_adopting boolean;
          BEGIN
            BEGIN
              IF TG_OP <> 'INSERT' THEN FETCH former INTO old_row; END IF;
              IF TG_OP <> 'DELETE' THEN FETCH present INTO new_row; END IF;
              -- An expression with both rows needs the columns of both.
              IF TG_OP = 'INSERT' THEN old_row := new_row; END IF;
              IF TG_OP = 'DELETE' THEN new_row := old_row; END IF;
    \(readRow)
            EXCEPTION WHEN OTHERS THEN
              \(stop)
            END;
            IF left_key IS NOT NULL AND source_mirror IS DISTINCT FROM own_mirror THEN
              \(sql.head) VALUES (source_mirror, \(literal), 'D', left_key, NULL, NULL, NULL);
              has_captured := true;
            END IF;
            IF target_mirror IS NOT NULL AND target_mirror IS DISTINCT FROM own_mirror THEN
              IF fault IS NOT NULL THEN
                IF former_key IS NOT NULL THEN
                  \(sql.head) VALUES (target_mirror, \(literal), 'D', former_key, NULL, NULL, NULL);
                END IF;
                kind := 'X'; names := '{}'; vals := ARRAY[fault]; olds := NULL;
              END IF;
              \(sql.head) VALUES (target_mirror, \(literal), kind, row_key, names, vals, olds);
              has_captured := true;
            END IF;
          END;
        END LOOP;
        IF TG_OP <> 'INSERT' THEN CLOSE former; END IF;
        IF TG_OP <> 'DELETE' THEN CLOSE present; END IF;
    """
  }

  /// Sets the variables of a captured row.
  private var readRow: String {
    let all = "names := \(sql.columnNames); vals := \(sql.columnTexts("new_row."));"
    return """
          IF TG_OP <> 'INSERT' THEN source_mirror := abs(old_row.ferry_member); END IF;
          IF TG_OP <> 'DELETE' THEN
            target_mirror := new_row.ferry_member;
            is_adopting := target_mirror < 0; target_mirror := abs(target_mirror);
          END IF;
          travelled := source_mirror IS NOT DISTINCT FROM target_mirror;
          IF source_mirror IS NOT NULL AND NOT travelled THEN left_key := \(sql.keyText("old_row.")); END IF;
          IF target_mirror IS NOT NULL THEN
            row_key := \(sql.keyText("new_row."));
            fault := \(fault("new_row."));
            IF travelled AND ROW(\(sql.keys("new_row"))) IS DISTINCT FROM ROW(\(sql.keys("old_row"))) THEN
              kind := 'K'; former_key := \(sql.keyText("old_row.")); olds := former_key;
              IF fault IS NULL THEN \(all) END IF;
            ELSIF fault IS NULL AND (is_adopting OR NOT travelled OR \(fault("old_row.")) IS NOT NULL) THEN
              kind := 'I'; olds := NULL; \(all)
            ELSIF fault IS NULL THEN
              kind := 'U';
      \(CapturedRowSQL(sql: sql).changedColumns("new_row", "old_row"))
              IF names = '{}' THEN target_mirror := NULL; END IF;
            END IF;
          END IF;
      """
  }

  // MARK: Many rows

  private var many: StatementCapture { StatementCapture(sql: sql) }

  /// The mirrors of a changed row as `m.source`, `m.target` and `m.adopting`.
  private func mirrors(old: String?, new: String?) -> String {
    let source = old.map { "abs(\(member($0)))" } ?? "NULL::bigint"
    let target = new.map { member($0) } ?? "NULL::bigint"
    return """
      CROSS JOIN LATERAL (SELECT x.source, abs(x.target) AS target, x.target < 0 AS adopting
            FROM (SELECT \(source) AS source, \(target) AS target OFFSET 0) x OFFSET 0) m
      """
  }

  private func isFor(_ mirror: String) -> String {
    "m.\(mirror) IS NOT NULL AND m.\(mirror) IS DISTINCT FROM own_mirror"
  }

  private var captureMany: String {
    let left = { (from: String) in
      "\(sql.head) SELECT m.source, \(literal), 'D', \(sql.keyText("o.")), NULL, NULL, NULL FROM \(from)"
    }
    let pairs = "\(many.pairs) \(mirrors(old: "o", new: "n"))"
    return """
          IF TG_OP = 'TRUNCATE' THEN
            \(left("\(sql.target) o \(mirrors(old: "o", new: nil))")) WHERE m.source IS NOT NULL;
            has_captured := FOUND;
          ELSIF TG_OP = 'DELETE' THEN
            \(left("old_rows o \(mirrors(old: "o", new: nil))")) WHERE \(isFor("source"));
            has_captured := FOUND;
          ELSIF TG_OP = 'INSERT' THEN
            \(sql.head) SELECT m.target, \(literal),
              \(many.unlessUnfit("'I'::\"char\"", else: "'X'::\"char\"")), \(sql.keyText("n.")),
              \(many.unlessUnfit(sql.columnNames, else: "'{}'")),
              \(many.unlessUnfit(sql.columnTexts("n."), else: "ARRAY[f.fault]")), NULL
            FROM new_rows n \(mirrors(old: nil, new: "n")) \(many.faultOfRow) WHERE \(isFor("target"));
            has_captured := FOUND;
          ELSE
            \(left(pairs)) WHERE \(isFor("source")) AND m.source IS DISTINCT FROM m.target;
            has_captured := FOUND;
            -- Rows with another key that no device can hold.
            \(sql.head) SELECT m.target, \(literal), 'D', \(sql.keyText("o.")), NULL, NULL, NULL
            FROM \(pairs) WHERE \(isFor("target")) AND m.source = m.target AND \(many.isRekeyed)
              AND \(fault("n.")) IS NOT NULL;
            has_captured := has_captured OR FOUND;
            \(many.captureUpdated(
              mirror: "m.target", from: pairs, isMoved: "m.source IS DISTINCT FROM m.target",
              isAdopting: "m.adopting", where: isFor("target")));
            has_captured := has_captured OR FOUND;
          END IF;
      """
  }

  // MARK: Order

  /// As ``StatementCapture/reorder``, for the rows of several mirrors.
  private var reorder: String {
    let isOfTable =
      "c.mirror = ANY(\(members)) AND c.xid = pg_current_xact_id() AND c.tab = \(literal)"
    let exists = { (row: String) in
      """
      EXISTS (SELECT FROM \(sql.target) t WHERE ROW(\(sql.keyColumns)) = \(sql.row("\(row).key"))
              AND abs(\(member("t"))) = \(row).mirror)
      """
    }
    let same = "w.mirror = d.mirror AND w.key = d.key"
    return """
      WITH own AS MATERIALIZED (
            SELECT c.mirror, c.kind, c.key, c.olds FROM \(captured) c WHERE \(isOfTable) AND c.id > place),
          keys AS (SELECT mirror, key FROM own UNION SELECT mirror, olds FROM own WHERE kind = 'K'),
          inner_writes AS MATERIALIZED (
            SELECT c.* FROM \(captured) c
            WHERE \(isOfTable) AND c.id >= nested AND c.id < place
              AND ((c.mirror, c.key) IN (SELECT mirror, key FROM keys)
                OR c.kind = 'K' AND (c.mirror, c.olds) IN (SELECT mirror, key FROM keys))),
          replaced AS (
            SELECT d.mirror, d.key FROM inner_writes d JOIN own w ON \(same)
            WHERE d.kind = 'D' AND w.kind IN ('I', 'X') AND \(exists("d"))
            -- Rows written before a cascade of the statement changed or deleted them.
            UNION SELECT w.mirror, w.key FROM own w WHERE w.kind = 'D' AND NOT \(exists("w"))
            UNION SELECT d.mirror, d.key FROM inner_writes d JOIN own w ON \(same)
            WHERE d.kind = 'I' AND w.kind = 'U' AND NOT EXISTS (
              SELECT FROM inner_writes x WHERE x.kind = 'D' AND x.mirror = d.mirror AND x.key = d.key)),
          moved AS (
            DELETE FROM \(captured) c USING inner_writes i WHERE \(isOfTable) AND c.id = i.id
              AND (c.mirror, c.key) NOT IN (SELECT mirror, key FROM replaced) RETURNING c.*)
          INSERT INTO \(captured)(mirror, xid, at, tab, kind, key, names, vals, olds, tries)
          SELECT mirror, xid, at, tab, kind, key, names, vals, olds, tries FROM moved ORDER BY id
      """
  }
}
