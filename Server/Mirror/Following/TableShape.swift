import FerryPostgres
import FerryProtocol
import Foundation

/// The definition of a company's table as a mirror has followed it: columns by their numbers, so a
/// new name is no new column.
struct TableShape: Sendable, Equatable, Decodable {
  struct Column: Sendable, Equatable, Decodable {
    /// The number in the table. No later column gets it.
    var place: Int
    var name: String
    /// Identifies the type, with the length or the digits.
    var type: String
  }

  /// Identifies the table, whatever the name is.
  var relation: Int64
  var columns: [Column]

  func column(_ name: Name) -> Column? { columns.first { Name($0.name) == name } }

  /// Reads a stored shape; `nil` if none was stored.
  init?(_ text: String) throws {
    if text.isEmpty { return nil }
    self = try JSONDecoder().decode(Self.self, from: Data(text.utf8))
  }

  /// Returns the SQL of the shape of a table; NULL if there is no table.
  ///
  /// - Parameter relation: the SQL of the table's identifier.
  static func sql(_ relation: String) -> String {
    """
    (SELECT json_build_object('relation', c.oid::bigint, 'columns', (
        SELECT json_agg(json_build_object('place', a.attnum, 'name', a.attname,
          'type', concat(a.atttypid, ' ', a.atttypmod), 'rest', concat(a.attnotnull, ' ',
            a.attidentity, ' ', a.attgenerated, ' ', d.oid)) ORDER BY a.attnum)
        FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d
          ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
      'parts', (SELECT json_agg(concat_ws(' ', k.contype, k.conkey, k.confrelid, k.confkey,
          k.confdeltype, k.confupdtype, k.convalidated) ORDER BY k.oid)
        FROM pg_catalog.pg_constraint k
        WHERE k.conrelid = c.oid AND k.contype IN ('p', 'u', 'f')))::text
      FROM pg_catalog.pg_class c WHERE c.oid = \(relation))
    """
  }
}

/// The shapes of a mirror's tables; all calls block.
extension MirrorLedger {
  /// The condition of a recorded table `r` with a write that its definition kept from being captured.
  private static let isMissed = """
    EXISTS (SELECT FROM ferry_mirror.stops x
      WHERE x.mirror = r.mirror AND x.tab = r.tab AND x.definition)
    """

  /// Returns `true` if a table has another shape than the stored one, or has had it since. A table
  /// without one is not followed.
  func hasOtherShapes(_ connection: PostgresConnection) throws -> Bool {
    try connection.query(
      PostgresStatement(
        "mirror_shapes",
        """
        SELECT EXISTS (SELECT FROM ferry_mirror.recorded r WHERE r.mirror = $1 AND r.shape <> ''
          AND (r.shape <> coalesce(\(TableShape.sql("to_regclass(r.target)::oid")), '')
            OR \(Self.isMissed)))
        """), [.int8(number)]
    ).first?.bool(0) ?? false
  }

  /// A table with another shape. The present one may be the stored one again.
  struct OtherShape: Sendable {
    var table: Name
    /// The columns with recorded writes.
    var columns: [Name]
    var former: TableShape
    var present: TableShape
    /// The present shape as it is stored.
    var text: String

    /// Returns the names that columns of the settings have now, without dropped ones.
    func presentNames(of columns: [String], _ renamed: RenamedColumns) -> [String] {
      let places = renamed.places(in: table)
      return columns.compactMap { column in
        let name = Name(column)
        let place = places[name] ?? former.column(name)?.place
        return (present.columns.first { $0.place == place } ?? present.column(name))?.name
      }
    }
  }

  /// Returns the existing tables with other shapes, also those that had another one for a while.
  func otherShapes(_ connection: PostgresConnection) throws -> [OtherShape] {
    try connection.query(
      .once(
        """
        SELECT r.tab, r.shape, s.shape, r.columns FROM ferry_mirror.recorded r CROSS JOIN LATERAL (
          SELECT \(TableShape.sql("to_regclass(r.target)::oid")) AS shape) s
        WHERE r.mirror = $1 AND r.shape <> '' AND s.shape IS NOT NULL
          AND (s.shape <> r.shape OR \(Self.isMissed)) ORDER BY r.tab
        """), [.int8(number)]
    ).compactMap { row in
      let text = try row.text(2)
      guard let former = try TableShape(try row.text(1)), let present = try TableShape(text) else {
        return nil
      }
      return OtherShape(
        table: Name(try row.text(0)),
        columns: try row.array(3, of: String.self).compactMap { $0.map { Name($0) } },
        former: former, present: present, text: text)
    }
  }

  /// Gives tables stored shapes that no table has, but with the same contents: they are followed again
  /// unless their functions are made.
  func beginFollowing(_ tables: [Name], _ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.recorded SET shape = rtrim(shape) || ' '
        WHERE mirror = $1 AND tab = ANY($2::text[]) AND shape <> ''
        """), [.int8(number), .array(PostgresArray(tables.map { Optional($0.text) }))])
  }

  /// Records followed tables in the transaction that makes their functions. No program is writing to
  /// them. Unrecorded writes of before are compared.
  func adapt(to tables: [FollowedTable], _ connection: PostgresConnection) throws {
    for table in tables {
      try rename(table, connection)
      let added = PostgresArray<String>(table.added.map { Optional($0.text) })
      _ = try connection.query(
        .once(
          """
          UPDATE ferry_mirror.adopted a SET former = true, added = coalesce(a.added, '{}') || $3::text[],
            gap = a.gap OR $4::boolean OR s.has
          FROM (SELECT EXISTS (SELECT FROM ferry_mirror.stops
            WHERE mirror = $1 AND tab = $2) AS has) s
          WHERE a.mirror = $1 AND a.tab = $2 AND (cardinality($3::text[]) > 0 OR $4::boolean OR s.has)
          """), [.int8(number), .text(table.name.text), .array(added), .bool(table.compares)])
      _ = try connection.query(
        .once("DELETE FROM ferry_mirror.stops WHERE mirror = $1 AND tab = $2"),
        [.int8(number), .text(table.name.text)])
    }
  }

  /// Gives the recorded writes of a table the new names of columns.
  private func rename(_ table: FollowedTable, _ connection: PostgresConnection) throws {
    for column in table.recaptured {
      for (place, names) in [("captured", "names"), ("adopted", "added")] {
        _ = try connection.query(
          .once(
            """
            UPDATE ferry_mirror.\(place) SET \(names) = array_replace(\(names), $3, $4)
            WHERE mirror = $1 AND tab = $2 AND $3 = ANY(\(names))
            """),
          [
            .int8(number), .text(table.name.text), .text(column.former.text),
            .text(column.present.text),
          ])
      }
    }
  }
}
