import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

@Suite("PostgreSQL values", .hangLimit)
struct PostgresTypesTests {
  private static let echo = PostgresStatement(
    "echo", "SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9")
  private static let oddText = "it's \"quoted\" \\ ünï 👩‍👩‍👧 ;-- \n\t"

  @Test("scalars are read back unchanged, extremes included")
  func scalars() async throws {
    let database = try await TestDatabase()
    let id = UUID()
    for number in [Int64.min, -1, 0, 1, 9_007_199_254_740_993, .max] {
      try await database.pool.run { connection in
        let rows = try connection.query(
          Self.echo,
          [
            .int8(number), .int4(Int32(truncatingIfNeeded: number)), .int2(.min), .bool(true),
            .text(Self.oddText), .bytea([0, 255, 10, 0]), .uuid(id), .float8(-0.1),
            .timestamptz(1_700_000_000_123_456),
          ])
        let row = rows[0]
        #expect(try row.int8(0) == number)
        #expect(try row.int4(1) == Int32(truncatingIfNeeded: number))
        #expect(try row.int2(2) == .min)
        #expect(try row.bool(3))
        #expect(try row.text(4) == Self.oddText)
        #expect(try row.bytes(5) == [0, 255, 10, 0])
        #expect(try row.bytes(5) { $0[1] } == 255)
        #expect(try row.uuid(6) == id)
        #expect(try row.uuidBytes(6) == withUnsafeBytes(of: id.uuid) { [UInt8]($0) })
        #expect(try row.float8(7) == -0.1)
        #expect(try row.timestamptz(8) == 1_700_000_000_123_456)
      }
    }
  }

  @Test("NULL is distinguished from empty in every type")
  func nulls() async throws {
    let database = try await TestDatabase()
    try await database.pool.run { connection in
      let nulls = try connection.query(
        Self.echo,
        [
          .int8(nil), .int4(nil), .int2(nil), .bool(nil), .text(nil), .bytea(nil), .uuid(nil),
          .float8(nil), .timestamptz(nil),
        ])
      for column in 0..<9 { #expect(nulls[0].isNull(column)) }
      #expect(try nulls[0].ifPresent(0, as: Int64.self) == nil)
      let empty = try connection.query(
        .once("SELECT $1, $2, $3::text IS NULL"), [.text(""), .bytea([]), .text("")])
      #expect(try empty[0].ifPresent(0) == "")
      #expect(try empty[0].bytes(1) == [])
      #expect(try !empty[0].bool(2))
    }
  }

  @Test("the server reads the time that was sent")
  func timestamps() async throws {
    let database = try await TestDatabase()
    try await database.pool.run { connection in
      let rows = try connection.query(
        .once("SELECT to_char($1 AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"),
        [.timestamptz(1_700_000_000_123_456)])
      #expect(try rows[0].text(0) == "2023-11-14 22:13:20.123456")
    }
  }

  @Test("arrays are read back unchanged, with NULL elements, empty, and NULL as a whole")
  func arrays() async throws {
    let database = try await TestDatabase()
    let id = UUID()
    try await database.pool.run { connection in
      try Self.expectEcho([Int64.min, nil, 0, .max], connection)
      try Self.expectEcho([Int32.min, nil, .max], connection)
      try Self.expectEcho([Int16.min, nil, .max], connection)
      try Self.expectEcho([Self.oddText, nil, "", "NULL", "{,}"], connection)
      try Self.expectEcho([[0, 255], nil, [], [92]] as [[UInt8]?], connection)
      try Self.expectEcho([id, nil, UUID()], connection)
      try Self.expectEcho([true, nil, false], connection)
      try Self.expectEcho([0.5, nil, -.infinity], connection)
      try Self.expectEcho([Int64?](), connection)
      try Self.expectEcho([nil, nil] as [String?], connection)
      let null = try connection.query(.once("SELECT $1"), [.nullArray(of: Int64.self)])
      #expect(null[0].isNull(0))
    }
  }

  private static func expectEcho<E: PostgresElement & Equatable>(
    _ elements: [E?], _ connection: PostgresConnection
  ) throws {
    let rows = try connection.query(
      .once("SELECT $1, cardinality($1)"), [.array(PostgresArray(elements))])
    #expect(try rows[0].array(0, of: E.self) == elements)
    #expect(try rows[0].int4(1) == Int32(elements.count))
  }

  @Test("text, bytes and ids can be appended from raw bytes")
  func rawAppends() async throws {
    let database = try await TestDatabase()
    let id = UUID()
    let idBytes = withUnsafeBytes(of: id.uuid) { [UInt8]($0) }
    try await database.pool.run { connection in
      var texts = PostgresArray<String>()
      texts.append(utf8: "ä€😀".utf8)
      var blobs = PostgresArray<[UInt8]>()
      blobs.append(bytes: [1, 0, 2])
      var ids = PostgresArray<UUID>()
      ids.append(uuidBytes: idBytes)
      ids.append(
        high: idBytes[..<8].reduce(0) { $0 << 8 | UInt64($1) },
        low: idBytes[8...].reduce(0) { $0 << 8 | UInt64($1) })
      var parameters = PostgresParameters()
      parameters.append(texts)
      parameters.append(blobs)
      parameters.append(ids)
      parameters.append(utf8: "x".utf8)
      parameters.append(bytes: [7])
      parameters.append(uuidBytes: idBytes)
      let row = try connection.query(.once("SELECT $1, $2, $3, $4, $5, $6"), parameters)[0]
      #expect(try row.array(0) == ["ä€😀"])
      #expect(try row.array(1) == [[1, 0, 2]] as [[UInt8]?])
      #expect(try row.array(2) == [id, id])
      #expect(try row.text(3) == "x")
      #expect(try row.bytes(4) == [7])
      #expect(try row.uuid(5) == id)
    }
  }

  @Test("one unnest inserts a hundred thousand elements a column")
  func bulkInsert() async throws {
    let database = try await TestDatabase(setUp: [
      "CREATE TABLE item (id bigint PRIMARY KEY, name text, ok boolean, data bytea)"
    ])
    let count = 100_000
    try await database.pool.run { connection in
      var (ids, names) = (PostgresArray<Int64>(reserving: count), PostgresArray<String>())
      var (flags, blobs) = (PostgresArray<Bool>(), PostgresArray<[UInt8]>())
      for number in 0..<count {
        ids.append(Int64(number))
        names.append(number % 3 == 0 ? nil : "name \(number)")
        flags.append(number % 2 == 0)
        blobs.append([UInt8(truncatingIfNeeded: number)])
      }
      let inserted = try connection.query(
        .once(
          """
          INSERT INTO item
          SELECT * FROM unnest($1::bigint[], $2::text[], $3::boolean[], $4::bytea[])
          """), [.array(ids), .array(names), .array(flags), .array(blobs)])
      #expect(inserted.affected == count)
      #expect(
        try connection.int8("SELECT count(*) FROM item WHERE name IS NULL") == Int64(count + 2) / 3)
      let row = try connection.query(.once("SELECT * FROM item WHERE id = $1"), [.int8(77_777)])[0]
      #expect(try row.text(1) == "name 77777")
      #expect(try !row.bool(2))
      #expect(try row.bytes(3) == [UInt8(truncatingIfNeeded: 77_777)])
    }
  }

  @Test("reading NULL or another type throws and names the column")
  func mismatches() async throws {
    let database = try await TestDatabase()
    try await database.pool.run { connection in
      let sql = "SELECT NULL::bigint AS nothing, 'abcdefgh' AS letters"
      let row = try connection.query(.once(sql))[0]
      let null = #expect(throws: PostgresError.self) { try row.int8(0) }
      #expect(null?.message == "column nothing is NULL")
      let wrong = #expect(throws: PostgresError.self) { try row.int8(1) }
      #expect(wrong?.kind == .unexpectedResult)
      #expect(wrong?.message.contains("letters") == true)
    }
  }
}
