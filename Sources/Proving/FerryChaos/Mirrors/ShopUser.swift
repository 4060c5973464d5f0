import FerryConformance
import FerrySQLite
import Foundation
import Synchronization

/// The writes of all users, for the judge.
final class WriteLedger: Sendable {
  private let state = Mutex<[AuthoredWrite]>([])

  func add(_ write: AuthoredWrite) { state.withLock { $0.append(write) } }
  var writes: [AuthoredWrite] { state.withLock { $0 } }
}

/// The user of one device with the shop's tables: takes orders, moves goods and writes notes.
struct ShopUser: Sendable {
  let device: CommandLineDevice
  let plan: RoundPlan
  /// The device's place among the devices.
  let index: Int
  let collector: Collector
  let ledger: WriteLedger
  let chronicle: Chronicle

  /// Performs this device's share of the planned transactions, each at the planned time or as soon
  /// as the one before is done, with some reads in between.
  func run(from start: ContinuousClock.Instant, done: @Sendable () -> Void) async throws {
    for number in stride(from: index, to: plan.transactions, by: plan.devices) {
      let at = plan.milliseconds * number / plan.transactions
      try await Task.sleep(until: start + .milliseconds(at))
      try await perform(number)
      if number.isMultiple(of: 3) { try await read() }
      done()
    }
  }

  /// Reads all rows in one snapshot, and the replica's state.
  private func read() async throws {
    let (rows, evidence) = try await blocking { [file = device.file] in
      try file.read { (try ShopRows.read($0), try ReplicaEvidence.read($0)) }
    }
    await collector.see(.read(device: device.name, evidence))
    for fault in ShopBooks.faults(in: rows).prefix(3) {
      await collector.add(Violation(oracle: "whole-transactions", "\(device.name) reads: \(fault)"))
    }
  }

  private func perform(_ number: Int) async throws {
    let order = try await blocking { [self] in
      try device.file.read { connection in
        var maker = ShopWriter(
          author: device.name, random: SeededRandom(plan.seed, "write \(number)"), connection)
        try maker.make()
        return maker.made
      }
    }
    guard !order.statements.isEmpty else { return await collector.count { $0.skipped += 1 } }
    let script = DeviceFile.journalled(
      order.statements.joined(separator: ";\n"), action: number)
    let ending = try await device.write(script)
    // The file is the evidence: a killed process may not have reported a commit.
    let recorded = try await blocking { [file = device.file] in try file.recorded(by: number) }
    chronicle.append(
      device.name,
      "\(order.kind) \(number): \(ending)\(recorded == nil ? ", not in the file" : "")")
    switch (ending, recorded) {
    case (.committed, nil):
      await collector.add(
        Violation(
          oracle: "durable-writes",
          "\(device.name): write \(number) was reported as committed, but is not in the file"))
    case (.refused(let reason), .some):
      await collector.add(
        Violation(
          oracle: "durable-writes",
          "\(device.name): write \(number) was refused (\(reason)), but is in the file"))
    case (.refused, nil): await collector.count { $0.refused += 1 }
    case (.killed, nil): await collector.count { $0.killed += 1 }
    case (.committed, .some), (.killed, .some): break
    }
    guard let recorded else { return }
    ledger.add(order.write)
    // A reply may go with its note before it was sent: the rules for it are those of
    // `MirroredTables`.
    let operations = recorded.filter { $0.key.table != "replies" }
    await collector.see(.committed(device: device.name, operations))
  }
}

/// All rows of the shop on a device.
enum ShopRows {
  static func read(_ connection: SQLiteConnection) throws -> NamedRows {
    var rows: NamedRows = [:]
    for table in ShopBooks.tables {
      try connection.prepare(table.deviceQuery).forEach { row in
        var values: [String: String] = [:]
        for (index, column) in zip(Int32(1)..., table.columns) where !row.isNull(index) {
          values[column] = row.text(index)
        }
        rows[RowName(table.name, row.text(0))] = values
      }
    }
    return rows
  }
}

/// One transaction of a device's user.
struct ShopWrite: Sendable {
  var kind = ""
  var statements: [String] = []
  var write: AuthoredWrite
}

/// Makes a transaction from the rows of a device.
struct ShopWriter {
  private(set) var made: ShopWrite
  private var random: SeededRandom
  private let connection: SQLiteConnection

  init(author: String, random: SeededRandom, _ connection: SQLiteConnection) {
    made = ShopWrite(write: AuthoredWrite(author: author, isAcknowledged: true))
    (self.random, self.connection) = (random, connection)
  }

  /// Draws a kind of transaction and makes the statements; none if there are no rows for it.
  mutating func make() throws {
    switch random.below(20) {
    case 0..<6: try order()
    case 6..<9: try extend()
    case 9..<11: try move()
    case 11..<13: try makeNote()
    case 13..<15: try edit()
    case 15..<17: try reply()
    case 17: try deleteNote()
    case 18: try pack()
    default: try register()
    }
  }

  private mutating func key() -> String {
    // A short key; the device's name makes it unique beside other seeds.
    "\(made.write.author)-" + String(random.next(), radix: 36)
  }

  /// Returns one of the rows of a query, by chance.
  private mutating func one(_ query: String) throws -> [String]? {
    let rows = try connection.prepare(query + " ORDER BY 1").rows { row in
      (0..<row.columnCount).map { row.text($0) }
    }
    return rows.isEmpty ? nil : rows[random.below(rows.count)]
  }

  private mutating func insert(_ table: String, _ key: String, _ columns: [(String, String)]) {
    let names = (["id"] + columns.map(\.0)).joined(separator: ", ")
    let values = (["'\(key)'"] + columns.map(\.1)).joined(separator: ", ")
    made.statements.append("INSERT INTO \(table)(\(names)) VALUES (\(values))")
    made.write.inserted.append(RowName(table, key))
  }

  // MARK: Stock

  /// Moves goods: an entry, and both places.
  private mutating func move(_ product: String, _ from: String, _ to: String, _ quantity: Int) {
    insert(
      "movements", key(),
      [
        ("product", "'\(product)'"), ("from_place", "'\(from)'"), ("to_place", "'\(to)'"),
        ("quantity", "\(quantity)"),
      ])
    for (place, amount) in [(from, -quantity), (to, quantity)] {
      made.statements.append(
        "UPDATE stock SET quantity = quantity + \(amount) "
          + "WHERE product = '\(product)' AND place = '\(place)'")
    }
  }

  private mutating func move() throws {
    made.kind = "move"
    guard let product = try one("SELECT id FROM products")?[0] else { return }
    move(product, "shelf", "cellar", 1 + random.below(5))
  }

  // MARK: Orders

  private mutating func line(_ order: String) throws {
    guard let product = try one("SELECT id, price FROM products"), let price = Int(product[1])
    else { return }
    let quantity = 1 + random.below(3)
    insert(
      "lines", key(),
      [
        ("order_id", "'\(order)'"), ("product", "'\(product[0])'"), ("quantity", "\(quantity)"),
        ("price", "\(price)"),
      ])
    made.statements.append(
      "UPDATE orders SET total = total + \(quantity * price) WHERE id = '\(order)'")
    move(product[0], "shelf", "customer", quantity)
  }

  private mutating func order() throws {
    made.kind = "order"
    guard let customer = try one("SELECT id FROM customers WHERE approved = 1") else { return }
    let order = key()
    insert("orders", order, [("customer", "'\(customer[0])'")])
    for _ in 0...random.below(3) { try line(order) }
  }

  private mutating func extend() throws {
    made.kind = "extend"
    guard let order = try one("SELECT id FROM orders WHERE status = 'open'") else { return }
    try line(order[0])
  }

  private mutating func pack() throws {
    made.kind = "pack"
    guard let order = try one("SELECT id FROM orders WHERE status <> 'sent'") else { return }
    made.statements.append("UPDATE orders SET status = 'sent' WHERE id = '\(order[0])'")
  }

  // MARK: Notes and customers

  /// Returns the text of a note. Some are longer than the company permits: devices do not know its
  /// CHECK, and PostgreSQL refuses the row.
  private mutating func body() -> String {
    let body = key()
    return random.chance(1, in: 6) ? body + String(repeating: "!", count: 200) : body
  }

  private mutating func makeNote() throws {
    made.kind = "note"
    guard let order = try one("SELECT id FROM orders") else { return }
    insert("notes", key(), [("order_id", "'\(order[0])'"), ("body", "'\(body())'")])
  }

  private mutating func edit() throws {
    made.kind = "edit"
    guard let note = try one("SELECT id FROM notes")?[0] else { return }
    let body = body()
    made.statements.append("UPDATE notes SET body = '\(body)' WHERE id = '\(note)'")
    made.write.set.append(AuthoredWrite.Setting(RowName("notes", note), "body", body))
  }

  private mutating func reply() throws {
    made.kind = "reply"
    guard let note = try one("SELECT id FROM notes")?[0] else { return }
    let reply = key()
    insert("replies", reply, [("note", "'\(note)'"), ("body", "'\(key())'")])
    made.write.parents[RowName("replies", reply)] = RowName("notes", note)
  }

  private mutating func deleteNote() throws {
    made.kind = "delete"
    guard let note = try one("SELECT id FROM notes")?[0] else { return }
    made.statements.append("DELETE FROM notes WHERE id = '\(note)'")
    made.write.deleted.append(RowName("notes", note))
  }

  private mutating func register() throws {
    made.kind = "register"
    let email = "guest\(random.below(40))@example.com"
    guard try one("SELECT id FROM customers WHERE email = '\(email)'") == nil else { return }
    let customer = key()
    insert("customers", customer, [("email", "'\(email)'"), ("name", "'\(customer)'")])
  }
}
