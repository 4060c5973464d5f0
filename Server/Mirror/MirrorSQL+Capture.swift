import FerryProtocol

/// SQL to make PostgreSQL record the writes of programs.
extension MirrorSQL {
  /// The statements to make PostgreSQL record each write of others, in the same transaction.
  var capture: [String] {
    if let group, let capture = GroupCapture(self, group: group) { return capture.statements }
    let make = """
      CREATE OR REPLACE FUNCTION \(function)() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
      SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1
      AS \(quoted(postgres: captureBody))
      """
    let truncate = trigger(
      "truncate",
      "BEFORE TRUNCATE ON \(target) FOR EACH STATEMENT EXECUTE FUNCTION \(function)()")
    if let space = table.adoption?.space { return [make, truncate] + spaceTriggers(space) }
    if table.adoption?.condition == nil { return StatementCapture(sql: self).statements }
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

  /// The function that reports captured writes of a statement. It exists together with the
  /// capturing functions.
  private var teller: String { "\(Self.ledger).capture_\(mirror)_told" }

  private var makeTeller: String {
    let body = """
      BEGIN
        IF NOT (\(isMirror)) THEN \(MirrorLedger.notification(of: mirror)) END IF;
        RETURN NULL;
      END
      """
    return """
      CREATE OR REPLACE FUNCTION \(teller)() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
      SET search_path = pg_catalog, pg_temp AS \(quoted(postgres: body))
      """
  }

  /// The SQL condition for writes of the mirror itself. Any program may set the setting. So the
  /// session has to belong to the owner of the function, which is the mirror's role, or to a role
  /// that may become it.
  var isMirror: String {
    """
    current_setting('ferry.mirror', true) IS NOT DISTINCT FROM '\(mirror)'
      AND pg_has_role(session_user, current_user, 'MEMBER')
    """
  }

  /// Leaves out the mirror's own writes. A row that changes as their effect is captured: by ON
  /// DELETE of a foreign key, or by a trigger of a program. A step names the table of the present
  /// statement.
  var returnIfOwn: String {
    """
    IF \(isMirror) AND (TG_OP = 'TRUNCATE'
      OR pg_trigger_depth() = 1 AND current_setting('ferry.table', true) = TG_RELID::text)
    THEN RETURN NULL; END IF;
    """
  }

  /// The beginning of the triggers' names.
  var triggerPrefix: String { group.map(GroupCapture.prefix) ?? "ferry_\(mirror)_" }

  /// Creates a missing trigger.
  ///
  /// - Parameter relation: a partition of the table; `nil` for the table.
  func trigger(_ kind: String, of relation: String? = nil, _ clause: String) -> String {
    let name = triggerPrefix + kind
    return unlessPresent(
      name, in: "pg_trigger", prefix: "tg", of: relation, "CREATE TRIGGER \(name) \(clause)")
  }

  // MARK: The function

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
      \(returnIfOwn)\(tellRow)
      BEGIN
    \(captureTruncate)
    \(readRow(new: "NEW", old: "OLD", skip: "RETURN NULL"))
      EXCEPTION WHEN OTHERS THEN
        \(MirrorStop.insertion(of: mirror, table.name))
        RETURN NULL;
      END;
      IF fault IS NOT NULL THEN
    \(captureFault)
      END IF;
      \(head) VALUES (\(mirror), \(name), kind, row_key, names, vals, olds);
      RETURN NULL;
    END
    """
  }

  var head: String {
    "INSERT INTO \(Self.ledger).captured(mirror, tab, kind, key, names, vals, olds)"
  }

  /// The table's name as a literal.
  var name: String { quoted(postgres: table.name.text) }

  func keys(_ row: String) -> String {
    table.key.map { "\(row).\(quoted($0.name))" }.joined(separator: ", ")
  }

  /// Captures the deletes of TRUNCATE. PostgreSQL runs the triggers of the table and of all its
  /// partitions.
  var captureTruncate: String {
    """
          IF TG_OP = 'TRUNCATE' THEN
            \(head) SELECT \(mirror), \(name), 'D', \(keyText("t.")), NULL, NULL, NULL
              FROM \(travelling) t\(partitions == nil ? "" : " WHERE t.tableoid = TG_RELID");
            RETURN NULL;
          END IF;
    """
  }

  /// Sets the variables of a captured write. Skips the row if there is none.
  ///
  /// - Parameters:
  ///   - new: the variable of the written row.
  ///   - old: the variable of the row before.
  ///   - skip: the statement that ends the work on the row.
  func readRow(new: String, old: String, skip: String) -> String {
    let all = "names := \(columnNames); vals := \(columnTexts("\(new)."));"
    return """
          IF TG_OP <> 'INSERT' THEN travelled := \(holds(old) ?? "true"); END IF;
          IF TG_OP <> 'DELETE' THEN travels := \(holds(new) ?? "true"); END IF;
          IF NOT travels THEN
            IF NOT travelled THEN \(skip); END IF;
            kind := 'D'; row_key := \(keyText("\(old).")); names := NULL; vals := NULL; olds := NULL;
          ELSE
            row_key := \(keyText("\(new)."));
            fault := CASE \(faults("\(new).").joined(separator: " ")) END;
            IF travelled AND ROW(\(keys(new))) IS DISTINCT FROM ROW(\(keys(old))) THEN
              kind := 'K'; former_key := \(keyText("\(old).")); olds := former_key;
              IF fault IS NULL THEN \(all) END IF;
            ELSIF fault IS NULL AND (\(isNew(old))) THEN
              kind := 'I'; olds := NULL; \(all)
            ELSIF fault IS NULL THEN
              kind := 'U';
      \(changedColumns(new, old))
              IF names = '{}' THEN \(skip); END IF;
            END IF;
          END IF;
      """
  }

  var captureFault: String { table.adoption == nil ? raiseFault : captureUnfit }

  /// Rejects the write of a row that no device can hold, in a table of the mirror's own.
  var raiseFault: String {
    """
        RAISE EXCEPTION 'devices cannot hold the value of %', fault
          USING ERRCODE = '22000', TABLE = TG_TABLE_NAME,
            HINT = 'Ferry limits a key to 512 bytes, a value to 1 MiB and a row to 4 MiB.';
    """
  }

  /// Records the write of a company's row that no device can hold.
  private var captureUnfit: String {
    """
        IF former_key IS NOT NULL THEN
          \(head) VALUES (\(mirror), \(name), 'D', former_key, NULL, NULL, NULL);
        END IF;
        kind := 'X'; names := '{}'; vals := ARRAY[fault]; olds := NULL;
    """
  }

  /// The SQL of whether the whole row travels: the space may lack other columns of an updated row.
  private func isNew(_ old: String) -> String {
    if table.adoption == nil { return "NOT travelled" }
    if isAdopting { return "true" }
    return "NOT travelled OR (CASE \(faults("\(old).").joined(separator: " ")) END) IS NOT NULL"
  }

  var columnNames: String { list(table.columns.map { quoted(postgres: $0.name.text) }) }

  func columnTexts(_ row: String) -> String {
    list(table.columns.map { $0.type.encoded(row + quoted($0.name)) })
  }

  /// Adds the columns changed by an update to `names`, `vals` and `olds`.
  func changedColumns(_ new: String, _ old: String) -> String {
    table.columns.map { column in
      let name = quoted(column.name)
      return """
          IF \(column.type.compared("\(new).\(name)")) IS DISTINCT FROM \
          \(column.type.compared("\(old).\(name)")) THEN
            names := array_append(names, \(quoted(postgres: column.name.text)));
            vals := array_append(vals, \(column.type.encoded("\(new).\(name)")));
            olds := array_append(olds, \(column.type.encoded("\(old).\(name)")));
          END IF;

        """
    }.joined()
  }

  /// Returns cases of a row that a device cannot hold, with the part to name. The writer's
  /// statement fails: else the row would vanish later.
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
    cases += table.key.compactMap { column in
      column.keyFault(row + quoted(column.name)).map { "WHEN \($0) THEN 'the key'" }
    }
    for column in table.columns {
      let value = row + quoted(column.name)
      var conditions = [column.fault(value)].compactMap(\.self)
      if let size = column.type.size(value) {
        sizes.append("coalesce(\(size), 0)")
        conditions.append("\(size) > \(limits.valueBytes)")
      }
      if conditions.isEmpty { continue }
      cases.append(
        "WHEN \(conditions.joined(separator: " OR ")) "
          + "THEN \(quoted(postgres: "column \(column.name)"))")
    }
    let total = sizes.joined(separator: " + ")
    return cases + ["WHEN \(total) > \(limits.operationBytes) THEN 'the row'"]
  }
}
