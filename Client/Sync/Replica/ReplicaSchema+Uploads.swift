extension ReplicaSchema {
  /// Failed operations of upload-only tables, and the view of such tables for users.
  ///
  /// Confirmed operations stay pending until the cursor passes them; the view omits them. One
  /// comparison orders a place and a text: the place has leading zeros and comes first. A batch has a
  /// row for each record that it changed here; without such records, one row without a record.
  static let uploads = """
    CREATE TABLE ferry_failed(  -- pending operations that could not be delivered
      seq INTEGER PRIMARY KEY,
      detail TEXT NOT NULL
    );
    CREATE VIEW ferry_uploads(
      tbl, record, is_dirty, is_deleted, failed, detail, identifier
    ) AS
    WITH unconfirmed(tbl, record, seq, id, kind, data, failed, detail) AS (
      SELECT p.tbl, coalesce(b.record, p.record), p.seq, p.id, p.kind, p.data,
        f.seq IS NOT NULL, f.detail
      FROM ferry_pending AS p LEFT JOIN ferry_failed AS f ON f.seq = p.seq
        LEFT JOIN ferry_batch_rows AS b ON b.seq = p.seq
      WHERE p.seq > coalesce(
        (SELECT max(to_order) FROM ferry_current_packets WHERE state = 'acknowledged'), 0)
      UNION ALL
      SELECT tbl, record, seq, id, kind, data, 1, detail FROM ferry_unsent
      UNION ALL
      SELECT tbl, record, seq, id, kind, data, 1,
        coalesce(code || ': ' || detail, 'refused along with another change')
      FROM ferry_quarantine WHERE \(FailedUploads.isRejected)
    ), changes AS (
      SELECT *, CASE kind WHEN 'delete' THEN 1
        WHEN 'batch' THEN json_extract(data, '$.effect') = 'delete' ELSE 0 END AS is_delete
      FROM unconfirmed
    ), states AS (
      SELECT tbl, record, max(NOT is_delete) AS dirty, max(2 * seq + is_delete) & 1 AS deleted,
        max(failed) AS failed,
        substr(min(iif(failed, printf('%020d', seq) || detail, NULL)), 21) AS detail,
        lower(substr(max(printf('%020d', seq) || hex(id)), 21)) AS id
      FROM changes
      WHERE tbl IN (SELECT name FROM ferry_tables WHERE direction <> 'two-way')
      GROUP BY tbl, record, iif(record = '', id, NULL)
    )
    SELECT tbl, record, dirty, deleted, failed, detail, substr(id, 1, 8) || '-' || substr(id, 9, 4)
      || '-' || substr(id, 13, 4) || '-' || substr(id, 17, 4) || '-' || substr(id, 21)
    FROM states;
    """
}
