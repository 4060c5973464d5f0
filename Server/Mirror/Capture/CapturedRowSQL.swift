import FerryProtocol

/// Parts of the functions that capture written rows, in PL/pgSQL.
struct CapturedRowSQL {
  let sql: MirrorSQL

  private var table: MirrorTable { sql.table }
  private var mirror: Int64 { sql.mirror }

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

  /// Captures the deletes of TRUNCATE. PostgreSQL runs the triggers of the table and of all its
  /// partitions.
  var captureTruncate: String {
    """
          IF TG_OP = 'TRUNCATE' THEN
            \(sql.head) SELECT \(sql.mirror), \(sql.literal), 'D', \(sql.keyText("t.")), NULL, NULL, NULL
              FROM \(sql.travelling) t\(sql.capture.partitions == nil ? "" : " WHERE t.tableoid = TG_RELID");
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
    let all = "names := \(sql.columnNames); vals := \(sql.columnTexts("\(new)."));"
    return """
          IF TG_OP <> 'INSERT' THEN travelled := \(sql.holds(old) ?? "true"); END IF;
          IF TG_OP <> 'DELETE' THEN travels := \(sql.holds(new) ?? "true"); END IF;
          IF NOT travels THEN
            IF NOT travelled THEN \(skip); END IF;
            kind := 'D'; row_key := \(sql.keyText("\(old).")); names := NULL; vals := NULL; olds := NULL;
          ELSE
            row_key := \(sql.keyText("\(new)."));
            fault := CASE \(sql.faults("\(new).").joined(separator: " ")) END;
            IF travelled AND ROW(\(sql.keys(new))) IS DISTINCT FROM ROW(\(sql.keys(old))) THEN
              kind := 'K'; former_key := \(sql.keyText("\(old).")); olds := former_key;
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
          \(sql.head) VALUES (\(sql.mirror), \(sql.literal), 'D', former_key, NULL, NULL, NULL);
        END IF;
        kind := 'X'; names := '{}'; vals := ARRAY[fault]; olds := NULL;
    """
  }

  /// The SQL of whether the whole row travels: the space may lack other columns of an updated row.
  private func isNew(_ old: String) -> String {
    if table.adoption == nil { return "NOT travelled" }
    if sql.isAdopting { return "true" }
    return "NOT travelled OR (CASE \(sql.faults("\(old).").joined(separator: " ")) END) IS NOT NULL"
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
}
