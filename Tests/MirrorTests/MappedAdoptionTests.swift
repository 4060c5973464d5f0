import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror

/// The decisions about a company's keys with sequences, without a database.
@Suite("Plans of adopted sequences", .hangLimit)
struct MappedAdoptionTests {
  private static func column(_ name: String, _ type: String = "int8") -> CompanyColumn {
    CompanyColumn(name: name, type: type, shownType: type)
  }

  private static func sequence(isUsable: Bool = true) -> KeySequence {
    KeySequence(column: "id", name: "orders_id_seq", isUsable: isUsable)
  }

  private static var orders: CompanyTable {
    CompanyTable(
      name: "orders",
      columns: [column("id"), column("customer", "text"), column("tenant", "text")],
      key: ["id"], sequence: sequence())
  }

  /// Orders and articles, with a reference as part of the key.
  private static var lines: CompanyTable {
    CompanyTable(
      name: "lines", columns: [column("order_id"), column("place", "int4")],
      key: ["order_id", "place"],
      references: [CompanyReference(columns: ["order_id"], table: "orders", to: ["id"])])
  }

  private func fault(
    _ tables: CompanyTable..., chosen: [String: MirrorAdoption] = [:]
  ) -> String {
    do {
      _ = try AdoptionPlan(tables, chosen)
      return ""
    } catch {
      return "\(error)"
    }
  }

  private static func chosen(_ key: MirrorKey) -> MirrorAdoption {
    var adoption = MirrorAdoption()
    adoption.key = key
    return adoption
  }

  @Test("a key with a sequence is mapped, and references to it are translated")
  func mapped() throws {
    let plan = try AdoptionPlan([Self.orders, Self.lines], [:])
    #expect(plan.tables[0].definition.key == .mapped("id"))
    #expect(plan.omitted.isEmpty)
    let schema = try #require(try plan.added(to: .empty))
    let mirrored = try MirrorPlan(schema, adopted: ["orders", "lines"])
    let (orders, lines) = (
      try #require(mirrored.table("orders")), try #require(mirrored.table("lines"))
    )
    #expect(orders.isMapped && orders.key.map(\.type) == [.bigint])
    #expect(!lines.isMapped && mirrored.mapped(lines, "order_id") == "orders")
    #expect(mirrored.mapped(lines, "place") == nil)
    #expect(throws: MirrorFault.self) { try MirrorPlan(schema, chosen: ["orders"]) }
  }

  @Test("equal numbers are one record by choice, without a sequence, or if the space says so")
  func values() throws {
    let value = DeclaredKey.value([DeclaredKeyColumn("id", .integer)])
    let chosen = try AdoptionPlan([Self.orders], ["orders": Self.chosen(.value)])
    #expect(chosen.tables[0].definition.key == value)
    var other = Self.orders
    other.sequence = nil
    #expect(try AdoptionPlan([other], [:]).tables[0].definition.key == value)
    #expect(fault(other, chosen: ["orders": Self.chosen(.mapped)]).contains("no sequence"))
    // The space has the numbers as values already.
    let schema = try #require(try chosen.added(to: .empty))
    #expect(try AdoptionPlan([Self.orders], [:]).added(to: schema) == nil)
    let mapped = try #require(try AdoptionPlan([Self.orders], [:]).added(to: .empty))
    #expect(throws: MirrorFault.self) { try chosen.added(to: mapped) }
  }

  @Test("a sequence that the mirror may not use is refused with the way out")
  func rights() {
    var orders = Self.orders
    orders.sequence = Self.sequence(isUsable: false)
    #expect(fault(orders).contains("run GRANT USAGE ON SEQUENCE orders_id_seq"))
    #expect(fault(orders, chosen: ["orders": Self.chosen(.value)]).isEmpty)
  }

  @Test("a reference to numbers that cannot be translated is refused, unless it stays behind")
  func untranslated() throws {
    var part = MirrorAdoption(condition: "customer <> ''")
    #expect(
      fault(Self.orders, Self.lines, chosen: ["orders": part])
        == "table lines cannot be adopted: devices count the rows of table orders themselves, and "
        + "cannot translate column order_id, since not all rows of table orders travel; leave the "
        + "column out with --columns, or choose --key orders=value if equal numbers are the same "
        + "record on all sides")
    part.key = .value
    #expect(fault(Self.orders, Self.lines, chosen: ["orders": part]).isEmpty)
    var unchecked = Self.lines
    unchecked.references[0].isValid = false
    #expect(fault(Self.orders, unchecked).contains("PostgreSQL has not checked it"))
    var left = Self.lines
    left.key = ["place"]
    #expect(fault(Self.orders, left, chosen: ["lines": MirrorAdoption(columns: ["place"])]).isEmpty)
  }

  @Test("parents and children of one space keep their references")
  func siblings() throws {
    var lines = Self.lines
    lines.columns.append(Self.column("tenant", "text"))
    let space = MirrorAdoption(space: SpaceColumn("tenant", value: "a"))
    let plan = try AdoptionPlan([Self.orders, lines], ["orders": space, "lines": space])
    #expect(plan.tables[1].definition.references.map(\.table) == ["orders"])
    #expect(fault(Self.orders, lines, chosen: ["orders": space]).contains("cannot translate"))
  }
}
