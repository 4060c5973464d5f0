import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Testing

/// An object that is no Codable value: it maps its state by hand, for two tables.
private final class Form: Record {
  var id = ""
  var heading: String?
  var street: String?

  init(id: String, heading: String? = nil, street: String? = nil) {
    (self.id, self.heading, self.street) = (id, heading, street)
  }

  init(row: RecordRow) throws { try fill(from: RecordColumns(row: row)) }

  func columns(for table: TableInfo) throws -> RecordColumns {
    var columns: RecordColumns = ["id": id, "street": street]
    // One table has another name for the heading.
    columns[table.name == "notes" ? "title" : "heading"] = heading.columnValue
    return try columns.columns(for: table)
  }

  func fill(from columns: RecordColumns) throws {
    if case .text(let text)? = columns["id"] { id = text }
    let titles = [columns["heading"], columns["title"]].compactMap(\.self)
    if case .text(let text)? = titles.first(where: { $0 != .null }) {
      heading = text
    } else {
      heading = nil
    }
    if case .text(let text)? = columns["street"] { street = text } else { street = nil }
  }
}

@Suite("Virtual records", .hangLimit)
struct VirtualRecordTests {
  private let addresses = Table<RecordColumns>(
    "addresses", [.text("id").primaryKey(), .text("street"), .text("heading")])

  @Test("without override own values stay, and a nil on either side gives way to the other's value")
  func mergeKeeps() throws {
    let merged = try Note(id: "a", title: nil, done: true).merge(
      Note(id: "b", title: "two", done: nil, list: "l"))
    #expect(merged == Note(id: "a", title: "two", done: true, list: "l"))
  }

  @Test("with override the argument wins, its nils included, and absent columns change nothing")
  func mergeOverrides() throws {
    let note = Note(id: "a", title: "one", done: true, list: "l")
    #expect(
      try note.merge(Note(id: "b", title: nil, done: false), override: true)
        == Note(id: "b", title: nil, done: false, list: nil))
    #expect(
      try note.merge(["title": nil as String?] as RecordColumns, override: true)
        == Note(id: "a", title: nil, done: true, list: "l"))
  }

  @Test("an object stays itself in a merge, so that calls chain")
  func identity() throws {
    let form = Form(id: "a", heading: nil, street: "Quay 1")
    let result = try form.merge(Note(id: "b", title: "x"))
      .merge(["street": "Pier 2"] as RecordColumns, override: true)
      .merge(Heading(title: "last"))
    #expect(result === form)
    #expect(form.id == "a")
    #expect(form.heading == "x")
    #expect(form.street == "Pier 2")
  }

  @Test("many objects make one row, and one object makes rows of many tables")
  func manyAndOne() async throws {
    let fixture = try await Fixture()
    let addresses = addresses
    try await fixture.database.write { database throws in
      let row = try RecordColumns(of: Heading(title: "joined"))
        .merge(["id": "a"] as RecordColumns).merge(
          ["done": true, "colour": "red"] as RecordColumns)
      try Note.table.insert(row, in: database)
      let form = Form(id: "f", heading: "both", street: "Quay 1")
      try Note.table.insert(form, in: database)
      try addresses.insert(form, in: database)
    }
    #expect(
      try await fixture.notes() == [
        Note(id: "a", title: "joined", done: true), Note(id: "f", title: "both", done: false),
      ])
    let (address, street) = try await fixture.database.read { database throws in
      let form = try addresses.records(as: Form.self).find("f", in: database)
      return (try addresses.find("f", in: database), form?.street)
    }
    #expect(address == ["id": "f", "street": "Quay 1", "heading": "both"])
    #expect(street == "Quay 1")
  }

  @Test("a record hands over only the columns that a table has")
  func interest() async throws {
    let fixture = try await Fixture()
    let addresses = addresses
    try await fixture.database.write { database throws in
      let info = try addresses.info(in: database)
      let note = Note(id: "a", title: "x", done: nil)
      #expect(try note.columns(for: info) == ["id": "a"])
      #expect(
        try note.columns(for: .unrestricted)
          == ["id": "a", "title": "x", "done": nil as Bool?, "list": nil as String?])
    }
  }
}
