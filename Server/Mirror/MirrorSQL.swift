import FerryProtocol

/// SQL of a mirrored table in PostgreSQL. Names are quoted, and values are parameters.
struct MirrorSQL: Sendable {
  /// The schema with the tables of all mirrors' ledgers.
  static let ledger = "ferry_mirror"

  let table: MirrorTable
  let schema: String
  /// The mirror's number in the ledger.
  let mirror: Int64
  /// Whether rows of an adopted table may not be in the space yet.
  var isAdopting = false

  /// The table with its schema.
  var target: String { "\(quoted(Name(schema))).\(quoted(table.name))" }
  var function: String { "\(Self.ledger).capture_\(tag)" }

  /// Names what belongs to the table, as long as it is in the plan, wherever.
  private var tag: String { "\(mirror)_\(Self.digest(table.name.text))" }

  /// Returns 16 hexadecimal digits of a text (FNV-1a): the text may be too long for a name.
  private static func digest(_ text: String) -> String {
    var word: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in text.utf8 { word = (word ^ UInt64(byte)) &* 0x100_0000_01B3 }
    let digits = String(word, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// Names what belongs to some columns of the table.
  func name(_ kind: String, _ columns: [Name]) -> String {
    "ferry_\(tag)_\(kind)_\(Self.digest(columns.map { quoted($0) }.joined()))"
  }

  // MARK: Parts of the table

  /// Makes a part of the table that is absent. One that is there stays: to drop it would lock out
  /// readers.
  func unlessPresent(
    _ name: String, in catalog: String, prefix: String, _ action: String
  ) -> String {
    let body = """
      BEGIN
        IF NOT EXISTS (SELECT FROM pg_catalog.\(catalog) WHERE \(prefix)name = \(quoted(postgres: name))
          AND \(prefix)relid = \(quoted(postgres: target))::pg_catalog.regclass) THEN
          EXECUTE \(quoted(postgres: action));
        END IF;
      END
      """
    return "DO \(quoted(postgres: body))"
  }

  /// Makes a schema that is absent: IF NOT EXISTS needs the right to create schemas in any case.
  static func unlessPresent(schema: Name) -> String {
    let action = "CREATE SCHEMA \(quoted(schema))"
    let body = """
      BEGIN
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace
          WHERE nspname = \(quoted(postgres: schema.text))) THEN
          EXECUTE \(quoted(postgres: action));
        END IF;
      END
      """
    return "DO \(quoted(postgres: body))"
  }

  // MARK: Capture

  /// The statements that make PostgreSQL record each write of others, in its own transaction.
  var capture: [String] {
    let make = """
      CREATE OR REPLACE FUNCTION \(function)() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
      SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1
      AS \(quoted(postgres: table.adoption == nil ? captureBody : adoptedBody))
      """
    let truncate = trigger(
      "truncate",
      "BEFORE TRUNCATE ON \(target) FOR EACH STATEMENT EXECUTE FUNCTION \(function)()")
    if let space = table.adoption?.space { return [make, truncate] + spaceTriggers(space) }
    return [
      make, truncate, makeTeller,
      trigger(
        "row",
        "AFTER INSERT OR UPDATE OR DELETE ON \(target) FOR EACH ROW "
          + "EXECUTE FUNCTION \(function)()"),
      trigger(
        "told",
        "AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON \(target) FOR EACH STATEMENT "
          + "EXECUTE FUNCTION \(teller)()"),
    ]
  }

  /// The function that reports captured writes of a statement. It goes with those that capture.
  private var teller: String { "\(Self.ledger).capture_\(mirror)_told" }

  private var makeTeller: String {
    let body = """
      BEGIN
        IF NOT (\(isMirror)) THEN PERFORM pg_notify('\(MirrorLedger.channel)', '\(mirror)'); END IF;
        RETURN NULL;
      END
      """
    return """
      CREATE OR REPLACE FUNCTION \(teller)() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
      SET search_path = pg_catalog, pg_temp AS \(quoted(postgres: body))
      """
  }

  /// The SQL of whether the mirror itself writes. Any program may set the setting. So the session has to
  /// belong to the owner of the function, which is the mirror's role, or to one that may become it.
  private var isMirror: String {
    """
    current_setting('ferry.mirror', true) IS NOT DISTINCT FROM '\(mirror)'
      AND pg_has_role(session_user, current_user, 'MEMBER')
    """
  }

  /// Leaves out the mirror's own writes. A row that changes as their effect is captured: by ON DELETE of
  /// a foreign key, or by a trigger of a program. A step names the table of its present statement.
  var returnIfOwn: String {
    """
    IF \(isMirror) AND (TG_OP = 'TRUNCATE'
      OR pg_trigger_depth() = 1 AND current_setting('ferry.table', true) = TG_RELID::text)
    THEN RETURN NULL; END IF;
    """
  }

  /// Creates a trigger that is absent.
  func trigger(_ kind: String, _ clause: String) -> String {
    let name = "ferry_\(mirror)_\(kind)"
    return unlessPresent(name, in: "pg_trigger", prefix: "tg", "CREATE TRIGGER \(name) \(clause)")
  }

  /// Adds the columns that an update changes to `names`, `vals` and `olds`.
  var changedColumns: String {
    table.columns.map { column in
      let name = quoted(column.name)
      return """
          IF \(column.type.compared("NEW.\(name)")) IS DISTINCT FROM \
          \(column.type.compared("OLD.\(name)")) THEN
            names := array_append(names, \(quoted(postgres: column.name.text)));
            vals := array_append(vals, \(column.type.encoded("NEW.\(name)")));
            olds := array_append(olds, \(column.type.encoded("OLD.\(name)")));
          END IF;

        """
    }.joined()
  }

  private var captureBody: String {
    let head = "INSERT INTO \(Self.ledger).captured(mirror, tab, kind, key, names, vals, olds) "
    let name = quoted(postgres: table.name.text)
    let names = list(table.columns.map { quoted(postgres: $0.name.text) })
    let new = list(table.columns.map { $0.type.encoded("NEW.\(quoted($0.name))") })
    let insert =
      head + "VALUES (\(mirror), \(name), 'I', \(keyText("NEW.")), \(names), \(new), NULL);"
    let delete = head + "VALUES (\(mirror), \(name), 'D', \(keyText("OLD.")), NULL, NULL, NULL);"
    let rekey =
      head + "VALUES (\(mirror), \(name), 'K', \(keyText("NEW.")), \(names), \(new), "
      + "\(keyText("OLD.")));"
    let keys = { (row: String) in
      table.key.map { "\(row).\(quoted($0.name))" }.joined(separator: ", ")
    }
    return """
      DECLARE
        names text[] := '{}'; vals text[] := '{}'; olds text[] := '{}'; fault text;
      BEGIN
        \(returnIfOwn)
        IF TG_OP = 'TRUNCATE' THEN
          \(head) SELECT \(mirror), \(name), 'D', \(keyText("t.")), NULL, NULL, NULL
            FROM \(target) t;
          RETURN NULL;
        ELSIF TG_OP = 'DELETE' THEN
          \(delete)
          RETURN NULL;
        END IF;
        fault := CASE \(faults("NEW.").joined(separator: " ")) END;
        IF fault IS NOT NULL THEN
          RAISE EXCEPTION 'devices cannot hold the value of %', fault
            USING ERRCODE = '22000', TABLE = TG_TABLE_NAME,
              HINT = 'Ferry limits a key to 512 bytes, a value to 1 MiB and a row to 4 MiB.';
        END IF;
        IF TG_OP = 'INSERT' THEN
          \(insert)
        ELSIF ROW(\(keys("NEW"))) IS DISTINCT FROM ROW(\(keys("OLD"))) THEN
          \(rekey)
        ELSE
      \(changedColumns)
          IF names <> '{}' THEN
            \(head) VALUES (\(mirror), \(name), 'U', \(keyText("NEW.")), names, vals, olds);
          END IF;
        END IF;
        RETURN NULL;
      END
      """
  }

  /// Cases of a row that a device cannot hold, with what to name. The writer's statement fails: else
  /// its row would vanish later.
  func faults(_ row: String) -> [String] {
    let limits = Limits.standard
    // Several columns of a key travel as one JSON text.
    let isOne = table.key.count == 1
    let texts = table.key.map { column in
      let text = "\(row)\(quoted(column.name))::text"
      return "octet_length(\(isOne ? text : "to_json(\(text))::text"))"
    }
    let most = texts.count == 1 ? limits.recordBytes : limits.recordBytes - 16 * texts.count
    var sizes = texts
    var cases = ["WHEN \(texts.joined(separator: " + ")) NOT BETWEEN 1 AND \(most) THEN 'the key'"]
    for column in table.columns {
      let value = row + quoted(column.name)
      var condition = ""
      if let size = column.type.size(value) {
        sizes.append("coalesce(\(size), 0)")
        condition = "\(size) > \(limits.valueBytes)"
      } else if let fault = column.fault(value) {
        condition = fault
      } else {
        continue
      }
      cases.append("WHEN \(condition) THEN \(quoted(postgres: "column \(column.name)"))")
    }
    let total = sizes.joined(separator: " + ")
    return cases + ["WHEN \(total) > \(limits.operationBytes) THEN 'the row'"]
  }

  func list(_ elements: [String]) -> String {
    "ARRAY[" + elements.joined(separator: ", ") + "]::text[]"
  }

  func keyText(_ row: String) -> String {
    list(table.key.map { $0.type.encoded(row + quoted($0.name)) })
  }

  // MARK: Applying

  /// The parameters' columns: `k0`, `k1` … of the key and `c0`, `c1` … of the others.
  func source(keysOnly: Bool) -> String {
    let names =
      table.key.indices.map { "k\($0)" } + (keysOnly ? [] : table.columns.indices.map { "c\($0)" })
    let parameters = names.indices.map { "$\($0 + 1)::text[]" }.joined(separator: ", ")
    return "unnest(\(parameters)) AS x(\(names.joined(separator: ", ")))"
  }

  /// The values of a row of the parameters.
  var values: [String] {
    zip(table.key, 0...).map { $0.type.decoded("x.k\($1)") }
      + zip(table.columns, 0...).map { $0.type.decoded("x.c\($1)") }
  }

  var matches: String {
    zip(table.key, 0...).map { column, index in
      "t.\(quoted(column.name)) = \(column.type.decoded("x.k\(index)"))"
    }.joined(separator: " AND ")
  }

  /// Locks the rows of given keys, so that a writer waits until their new values are visible.
  var lock: String {
    "SELECT FROM \(target) t JOIN \(source(keysOnly: true)) ON \(matches) FOR UPDATE OF t"
  }

  /// Returns a row if a write to one of the keys is captured.
  var isWritten: String {
    let key = table.key.indices.map { "x.k\($0)" }.joined(separator: ", ")
    // Of others: a step may capture the delete of a row before it comes to the row itself.
    let written = { (condition: String) in
      """
      SELECT FROM \(Self.ledger).captured t JOIN \(source(keysOnly: true))
      ON t.mirror = \(mirror) AND t.tab = \(quoted(postgres: table.name.text))
        AND \(condition) = ARRAY[\(key)]::text[] AND t.xid <> pg_current_xact_id()
      """
    }
    return "\(written("t.key")) UNION ALL \(written("t.kind = 'K' AND t.olds")) LIMIT 1"
  }

  var delete: String {
    "DELETE FROM \(target) t USING \(source(keysOnly: true)) WHERE \(matches)"
      + (table.adoption == nil ? "" : isShared(keyParameters))
  }

  /// Gives one column of each unique key another value, for rows that exchange theirs; `nil` if there
  /// is nothing to vacate. Rows that others refer to by such a column keep it: they could lose them.
  var vacate: String? {
    // The row could leave the condition.
    if table.adoption?.condition != nil { return nil }
    var values: [Name: String] = [:]
    for unique in table.unique where unique.allSatisfy({ values[$0] == nil }) {
      let columns = table.columns.filter { unique.contains($0.name) }
      if let column = columns.first(where: { !$0.isRequired }) {
        values[column.name] = "NULL"
        continue
      }
      // A text may be too long for its column.
      let places = columns.sorted { $1.type == .text && $0.type != .text }.compactMap { column in
        column.type.placeholder.map { (column.name, $0) }
      }
      if let (name, value) = places.first { values[name] = value }
    }
    if values.isEmpty { return nil }
    let sets = values.sorted { $0.key < $1.key }.map { "\(quoted($0)) = \($1)" }
    return """
      UPDATE \(target) t SET \(sets.joined(separator: ", "))
      FROM \(source(keysOnly: true)) WHERE \(matches) AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_attribute a
          ON a.attrelid = k.confrelid AND a.attnum = ANY(k.confkey)
        WHERE k.contype = 'f' AND k.confrelid = \(quoted(postgres: target))::regclass
          AND a.attname = ANY(\(list(values.keys.map { quoted(postgres: $0.text) }))))
      \(table.adoption == nil ? "" : isShared(keyParameters))
      """
  }

  /// Names the table of the step's next statement. A delete of a parent may change rows of its own table
  /// as well, so that all rows are captured, and ``forget(areDeleted:)`` removes those of the step.
  func begin(isDelete: Bool) -> String {
    let relation = "\(quoted(postgres: target))::regclass"
    let own = "\(relation)::oid::text"
    guard isDelete else { return "SELECT set_config('ferry.table', \(own), true)" }
    return """
      SELECT set_config('ferry.table', CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_constraint
        WHERE contype = 'f' AND confrelid = \(relation) AND confdeltype IN ('c', 'n', 'd'))
        THEN '' ELSE \(own) END, true)
      """
  }

  /// Removes what the step has captured of its own rows: all of deleted rows, or the deletes of rows that
  /// are there again.
  func forget(areDeleted: Bool) -> String {
    """
    DELETE FROM \(Self.ledger).captured c USING \(source(keysOnly: true))
    WHERE c.xid = pg_current_xact_id() AND c.mirror = \(mirror)
      AND c.tab = \(quoted(postgres: table.name.text)) AND c.key = \(keyParameters)
      \(areDeleted ? "" : "AND c.kind = 'D'")
    """
  }

  var upsert: String {
    let names = table.all.map { quoted($0.name) }
    var text =
      "INSERT INTO \(target) AS t (\(names.joined(separator: ", "))) "
      + "SELECT \(values.joined(separator: ", ")) FROM \(source(keysOnly: false)) "
      + "ON CONFLICT (\(quoted(list: table.key.map(\.name)))) DO "
    guard !table.columns.isEmpty else { return text + "NOTHING" }
    let columns = table.columns.map { quoted($0.name) }
    text += "UPDATE SET " + columns.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
    return text + " WHERE \(differs("t", "excluded"))"
  }
}
