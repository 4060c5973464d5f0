import FerryPostgres
import FerryProtocol

/// The numbers of devices' records in one of a company's tables, in `ferry_mirror.keys`. Rows of the
/// company need no entry (``DerivedRecords``). All calls block.
struct MirrorKeys {
  static let tables = """
    CREATE TABLE IF NOT EXISTS ferry_mirror.origin(  -- distinguishes the rows of two databases
      one boolean PRIMARY KEY DEFAULT true CHECK (one), word uuid NOT NULL DEFAULT gen_random_uuid());
    INSERT INTO ferry_mirror.origin DEFAULT VALUES ON CONFLICT DO NOTHING;
    CREATE TABLE IF NOT EXISTS ferry_mirror.keys(  -- numbers of devices' records; they outlive mirrors
      space text NOT NULL, schema text NOT NULL, tab text NOT NULL, record text NOT NULL,
      number bigint NOT NULL,
      placed boolean NOT NULL DEFAULT false,  -- the table has had the row
      PRIMARY KEY (space, schema, tab, record));
    """

  /// Returns the word of a database.
  static func origin(_ connection: PostgresConnection) throws -> String {
    try connection.query(.once("SELECT word::text FROM ferry_mirror.origin")).first?.text(0) ?? ""
  }

  let space: String
  let schema: String
  let table: Name
  let derived: DerivedRecords

  init(space: String, schema: String, table: Name, origin: String) {
    (self.space, self.schema, self.table) = (space, schema, table)
    derived = DerivedRecords(origin: origin, schema: schema, table: table)
  }

  private var target: String { "\(quoted(Name(schema))).\(quoted(table))" }

  /// The condition of the table's entries `k`. The parameters are ``place``.
  private static let isHere = "k.space = $1 AND k.schema = $2 AND k.tab = $3"
  private var place: PostgresParameters { [.text(space), .text(schema), .text(table.text)] }

  private func parameters(_ more: PostgresArray<String>...) -> PostgresParameters {
    var all = place
    for array in more { all.append(array) }
    return all
  }

  private static func texts(_ texts: some Sequence<String>) -> PostgresArray<String> {
    PostgresArray(texts.map { Optional($0) })
  }

  /// Returns the rows of devices' records among some rows of the replica.
  func devices(_ rows: [MirrorRow]) -> [NumberedRow] {
    rows.compactMap { row in
      guard let record = row.record, case .integer(let number)? = row.key.first,
        record != derived.record(of: number)
      else { return nil }
      return NumberedRow(record: record, number: number)
    }
  }

  // MARK: Choosing

  /// The number of rounds for numbers that no row has: a sequence may be behind the rows.
  private static let roundsMax = 40
  /// Numbers of a round.
  private static let numbersMax: Int64 = 100_000

  /// Returns the numbers of records, in their order. Records without one get the next ones of the
  /// table's sequence.
  ///
  /// - Parameter isTaken: whether the records get other numbers than before.
  /// - Throws: ``MirrorFault`` if the table has no usable sequence any more.
  func numbers(
    of records: [String], isTaken: Bool, _ connection: PostgresConnection
  ) throws -> [Int64] {
    try connection.transaction { connection in
      try connection.execute("SET LOCAL lock_timeout = '2s'; SET LOCAL row_security = off")
      guard let sequence = try KeySequence.of(target, connection), sequence.isUsable else {
        throw MirrorFault(
          description: "the key of table \(table) has no sequence that the mirror may use: give it "
            + "one again, or grant USAGE on it")
      }
      var found = isTaken ? [:] : try stored(records, sequence, connection)
      if !isTaken {
        let company = records.filter { found[$0] == nil && derived.number(of: $0) != nil }
        found.merge(try present(company, sequence, connection)) { first, _ in first }
      }
      let left = Set(records).subtracting(found.keys).sorted()
      if !left.isEmpty {
        let new = try next(left.count, sequence, connection)
        try store(left, new, sequence, isTaken: isTaken, connection)
        found.merge(try stored(left, sequence, connection)) { $1 }
      }
      return try records.map { record in
        guard let number = found[record] else {
          throw MirrorFault(description: "record \(record) of table \(table) has got no number")
        }
        return number
      }
    }
  }

  /// The SQL of whether a program's row has the number of an entry `k`.
  private func isOthers(_ sequence: KeySequence) -> String {
    """
    (NOT k.placed AND EXISTS (SELECT FROM \(target) t WHERE t.\(quoted(sequence.column)) = k.number))
    """
  }

  private func stored(
    _ records: [String], _ sequence: KeySequence, _ connection: PostgresConnection
  ) throws -> [String: Int64] {
    let rows = try connection.query(
      .once(
        """
        SELECT k.record, k.number FROM ferry_mirror.keys k
        WHERE \(Self.isHere) AND k.record = ANY($4::text[]) AND NOT \(isOthers(sequence))
        """), parameters(Self.texts(records)))
    return try Dictionary(rows.map { (try $0.text(0), try $0.int8(1)) }) { $1 }
  }

  /// Returns the numbers of the company's records, as far as the sequence will not give them to
  /// other rows: anybody may write an identifier.
  private func present(
    _ records: [String], _ sequence: KeySequence, _ connection: PostgresConnection
  ) throws -> [String: Int64] {
    guard !records.isEmpty else { return [:] }
    let numbers = records.map { derived.number(of: $0).map { "\($0)" } }
    let rows = try connection.query(
      .once(
        """
        SELECT n.place FROM unnest($1::text[]::bigint[]) WITH ORDINALITY n(number, place)
        WHERE n.number <= coalesce(pg_sequence_last_value(\(quoted(postgres: sequence.name))::regclass), 0)
          OR EXISTS (SELECT FROM \(target) t WHERE t.\(quoted(sequence.column)) = n.number)
        """), [.array(PostgresArray(numbers))])
    var found: [String: Int64] = [:]
    for row in rows {
      let record = records[Int(try row.int8(0)) - 1]
      found[record] = derived.number(of: record)
    }
    return found
  }

  private func next(
    _ count: Int, _ sequence: KeySequence, _ connection: PostgresConnection
  ) throws -> [Int64] {
    var numbers: [Int64] = []
    var wanted = Int64(count)
    for _ in 0..<Self.roundsMax where numbers.count < count {
      numbers += try connection.query(
        .once(
          """
          SELECT s.number FROM (
            SELECT nextval(\(quoted(postgres: sequence.name))::regclass) AS number
            FROM generate_series(1, $1::bigint) OFFSET 0) s
          WHERE NOT EXISTS (SELECT FROM \(target) t WHERE t.\(quoted(sequence.column)) = s.number)
          """), [.int8(wanted)]
      ).map { try $0.int8(0) }
      // The sequence may be far behind.
      wanted = min(max(wanted * 2, Int64(count - numbers.count)), Self.numbersMax)
    }
    guard numbers.count >= count else {
      throw MirrorFault(
        description: "the sequence \(sequence.name) of table \(table) is far behind the rows: set "
          + "it to the greatest \(sequence.column), with setval")
    }
    return Array(numbers.prefix(count))
  }

  private func store(
    _ records: [String], _ numbers: [Int64], _ sequence: KeySequence, isTaken: Bool,
    _ connection: PostgresConnection
  ) throws {
    // Another mirror of the space may have stored one meanwhile.
    let condition = isTaken ? "" : "WHERE \(isOthers(sequence))"
    _ = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.keys AS k (space, schema, tab, record, number)
        SELECT $1, $2, $3, r.record, r.number::bigint
        FROM unnest($4::text[], $5::text[]) r(record, number)
        ON CONFLICT (space, schema, tab, record)
        DO UPDATE SET number = excluded.number, placed = false \(condition)
        """), parameters(Self.texts(records), Self.texts(numbers.map { "\($0)" })))
  }

  // MARK: Steps

  /// Returns those of some records whose numbers rows of others have: the table has not had the
  /// records' rows.
  func taken(
    _ rows: [NumberedRow], key column: Name, _ connection: PostgresConnection
  ) throws -> [String] {
    try unplaced(
      rows, "JOIN \(target) t ON t.\(quoted(column)) = r.number::bigint", connection)
  }

  /// Records that the table has the rows of records.
  func place(_ rows: [NumberedRow], _ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.keys AS k (space, schema, tab, record, number, placed)
        SELECT $1, $2, $3, r.record, r.number::bigint, true
        FROM unnest($4::text[], $5::text[]) r(record, number)
        ON CONFLICT (space, schema, tab, record) DO UPDATE SET number = excluded.number, placed = true
        WHERE NOT k.placed OR k.number <> excluded.number
        """), parameters(Self.texts(rows.map(\.record)), Self.texts(rows.map { "\($0.number)" })))
  }

  /// Returns those of some records with captured rows that have the numbers of other rows: the
  /// table has not had the records' rows.
  func lacking(
    _ rows: [NumberedRow], _ connection: PostgresConnection
  ) throws -> [String] {
    try unplaced(rows, "", connection)
  }

  /// Returns those of some records whose rows the table has not had.
  ///
  /// - Parameter join: chooses among the rows `r`.
  private func unplaced(
    _ rows: [NumberedRow], _ join: String, _ connection: PostgresConnection
  ) throws -> [String] {
    try connection.query(
      .once(
        """
        SELECT r.record FROM unnest($4::text[], $5::text[]) r(record, number) \(join)
          LEFT JOIN ferry_mirror.keys k ON \(Self.isHere) AND k.record = r.record
        WHERE k.placed IS NOT TRUE OR k.number <> r.number::bigint
        """), parameters(Self.texts(rows.map(\.record)), Self.texts(rows.map { "\($0.number)" }))
    ).map { try $0.text(0) }
  }

  /// Forgets the numbers of deleted records: a later row with such a number is another one.
  func forget(_ records: [String], _ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once(
        """
        DELETE FROM ferry_mirror.keys k WHERE \(Self.isHere) AND k.record = ANY($4::text[])
        """), parameters(Self.texts(records)))
  }
}

/// A record of a mapped table that a device has made, with the number in the table.
struct NumberedRow: Sendable, Hashable {
  var record: String
  var number: Int64
}
