import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The text of statements about many keys, for one key in SQLite and for all of them in PostgreSQL.
@Suite(.hangLimit)
struct PlainBatchTests {
  private static let key: [PlainBatch.Column] = [.init("tbl", .text), .init("record", .uuid)]

  private func words(_ statement: PlainStatement) -> String {
    statement.sql.split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }

  @Test("a look-up goes by each key, and returns the place of the key")
  func find() {
    let batch = PlainBatch.find("f", Self.key) { key in
      "SELECT r.a FROM r WHERE r.space = $1 AND r.tbl = \(key("tbl")) AND r.id = \(key("record"))"
    }
    #expect(
      words(batch.single) == "SELECT r.a FROM r WHERE r.space = $1 AND r.tbl = $2 AND r.id = $3")
    #expect(
      words(batch.many) == """
        SELECT wanted.place, found.* FROM unnest($2::text[], $3::uuid[]) WITH ORDINALITY \
        AS wanted(tbl, record, place) CROSS JOIN LATERAL ( SELECT r.a FROM r WHERE r.space = $1 \
        AND r.tbl = wanted.tbl AND r.id = wanted.record OFFSET 0 ) AS found ORDER BY wanted.place
        """)
  }

  @Test("the bytes of found values are bounded in both texts")
  func bounded() {
    let batch = PlainBatch.bounded(
      "b", Self.key, .total(small: 9), columns: ["a"], value: ("v", .text)
    ) { key in
      "FROM r WHERE r.space = $1 AND r.tbl = \(key("tbl")) AND r.id = \(key("record"))"
    }
    #expect(
      words(batch.single) == """
        SELECT a, length(CAST(v AS blob)), CASE WHEN length(CAST(v AS blob)) <= max($2, 9) \
        THEN v END FROM r WHERE r.space = $1 AND r.tbl = $3 AND r.id = $4
        """)
    #expect(
      words(batch.many) == """
        SELECT place, a, size, CASE WHEN size <= 9 OR sum(size) OVER \
        (ORDER BY place ROWS UNBOUNDED PRECEDING) <= $2 THEN v END \
        FROM (SELECT wanted.place, found.* FROM unnest($3::text[], $4::uuid[]) WITH ORDINALITY \
        AS wanted(tbl, record, place) CROSS JOIN LATERAL ( SELECT a, octet_length(v) AS size, v \
        FROM r WHERE r.space = $1 AND r.tbl = wanted.tbl AND r.id = wanted.record OFFSET 0 ) \
        AS found) AS listed ORDER BY place
        """)
    let page = PlainBatch.bounded("p", Self.key, .page, value: ("v", .bytes)) { _ in "FROM r" }
    #expect(words(page.single) == "SELECT length(v), CASE WHEN $2 > 0 THEN v END FROM r")
    #expect(words(page.many).contains("ROWS UNBOUNDED PRECEDING) - size < $2 THEN v END"))
  }

  @Test(
    "a query with large rows ends by their bytes in PostgreSQL, and is read row by row in SQLite")
  func scan() {
    let scan = PlainScan(
      "s", ["n", "v"], large: "v", order: "n", parameters: 1,
      "FROM r WHERE space = $1 ORDER BY n LIMIT 5")
    #expect(scan.plain.sqlite == "SELECT n, v FROM r WHERE space = ?1 ORDER BY n LIMIT 5")
    #expect(scan.large == 1)
    #expect(
      words(scan.bounded) == """
        SELECT n, v FROM ( SELECT *, sum(octet_length(v)) OVER (ORDER BY n ROWS UNBOUNDED \
        PRECEDING) - octet_length(v) AS before FROM (SELECT n, v FROM r WHERE space = $1 \
        ORDER BY n LIMIT 5) AS listed ) AS summed WHERE before < $2 ORDER BY n
        """)
  }

  @Test("only PostgreSQL locks the rows that a query reads")
  func locks() {
    let statement = PlainStatement("l", "SELECT a FROM t WHERE b = $1", .skipping)
    #expect(statement.sql == "SELECT a FROM t WHERE b = $1 FOR UPDATE SKIP LOCKED")
    #expect(statement.sqlite == "SELECT a FROM t WHERE b = ?1")
  }

  @Test(
    "new rows take the space from its own row, and the shared columns come before those of a key")
  func insert() {
    let batch = PlainBatch.insert(
      "i", into: "t", Self.key, sharing: ["at"], "ON CONFLICT DO NOTHING")
    #expect(
      words(batch.single)
        == "INSERT INTO t(space, at, tbl, record) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING")
    #expect(
      words(batch.many) == """
        INSERT INTO t(space, at, tbl, record) SELECT s.id, $2, wanted.* FROM spaces AS s \
        CROSS JOIN unnest($3::text[], $4::uuid[]) AS wanted(tbl, record) WHERE s.id = $1 \
        ON CONFLICT DO NOTHING
        """)
  }

  @Test("updates and deletes compare rows with each key")
  func change() {
    let column: [PlainBatch.Column] = [.init("hash", .bytes)]
    let update = PlainBatch.update("u", "t", column, sharing: 2, set: { _ in "a = $1" }) { key in
      "t.space = $2 AND t.hash = \(key("hash"))"
    }
    #expect(words(update.single) == "UPDATE t SET a = $1 WHERE t.space = $2 AND t.hash = $3")
    #expect(
      words(update.many) == """
        UPDATE t SET a = $1 FROM unnest($3::bytea[]) AS wanted(hash) \
        WHERE t.space = $2 AND t.hash = wanted.hash
        """)
    let delete = PlainBatch.delete("d", from: "t", column, sharing: 1) { key in
      "t.space = $1 AND t.hash = \(key("hash"))"
    }
    #expect(words(delete.single) == "DELETE FROM t WHERE t.space = $1 AND t.hash = $2")
    #expect(
      words(delete.many) == """
        DELETE FROM t USING unnest($2::bytea[]) AS wanted(hash) \
        WHERE t.space = $1 AND t.hash = wanted.hash
        """)
  }
}
