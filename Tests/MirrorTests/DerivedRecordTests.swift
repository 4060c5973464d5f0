import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror

/// The identifiers of a company's numbered rows.
@Suite("Records of a company's numbers", .hangLimit)
struct DerivedRecordTests {
  private static let orders = DerivedRecords(origin: "word", schema: "public", table: "orders")

  @Test(
    "each number has one identifier, which gives the number back and contains it for devices",
    arguments: [
      0, 1, 42, 4_294_967_295, 4_294_967_296, 1 << 61, 1 << 62, .max, -1, .min,
    ] as [Int64])
  func numbers(_ number: Int64) throws {
    let record = Self.orders.record(of: number)
    let id = try #require(UniqueID(record))
    #expect(id.version == 8 && id.low >> 62 == 2)
    #expect(Self.orders.number(of: record) == number)
    let contained = Int64(UInt32(truncatingIfNeeded: number))
    #expect(id.number == (contained == 0 ? nil : contained))
  }

  @Test("rows of another database, schema or table are other records, and so are devices' ones")
  func others() {
    let record = Self.orders.record(of: 7)
    let others = [
      DerivedRecords(origin: "other", schema: "public", table: "orders"),
      DerivedRecords(origin: "word", schema: "sales", table: "orders"),
      DerivedRecords(origin: "word", schema: "public", table: "order"),
      DerivedRecords(origin: "wordp", schema: "ublic", table: "orders"),
    ]
    for other in others {
      #expect(other.record(of: 7) != record)
      #expect(other.number(of: record) == nil)
    }
    let device = UniqueID(milliseconds: 1_795_955_429_000, random: 99, number: 7).description
    #expect(Self.orders.number(of: device) == nil)
    #expect(Self.orders.number(of: record.uppercased()) == nil)
    #expect(Self.orders.number(of: "7") == nil)
  }

  @Test("a captured row counts for its number unless a write before has deleted the number's row")
  func firstRows() {
    var table = MirrorTable(
      name: "orders", key: [MirrorColumn(name: "id", affinity: .integer, type: .bigint)],
      columns: [], unique: [], indexes: [], references: [])
    table.isMapped = true
    func write(_ kind: CapturedWrite.Kind, _ key: String, from former: String? = nil)
      -> CapturedWrite
    {
      CapturedWrite(
        id: 1, tries: 0, transaction: "1", table: "orders", kind: kind, key: [key],
        former: former.map { [$0] } ?? [])
    }
    let writes = [
      write(.insert, "1"), write(.delete, "2"), write(.insert, "2"), write(.update, "3"),
      write(.rekey, "5", from: "4"), write(.insert, "4"), write(.slice, "6"), write(.insert, "1"),
    ]
    #expect(
      MirrorRenumbering.firstRows(of: table, writes) == [["1"], ["5"], ["6"]])
    table.name = "other"
    #expect(MirrorRenumbering.firstRows(of: table, writes).isEmpty)
  }
}
