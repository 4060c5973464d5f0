import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Testing

/// An object that is no Codable value: it maps state by hand, for two tables.
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

/// A view's data: an object of a `Codable` class; the fields keep the object's identity.
private final class Badge: Codable, Record, MappedRecord {
  var id = ""
  var title: String?
  var done: Bool?

  init(id: String = "", title: String? = nil, done: Bool? = nil) {
    (self.id, self.title, self.done) = (id, title, done)
  }

  static var fields: [RecordField<Badge>] {
    [RecordField("id", \.id), RecordField("title", \.title), RecordField("done", \.done)]
  }
}

/// An object with the columns of three tables, each by the table's name: the seed's `RecordViewA`.
private final class Person: VirtualRecord {
  var id: String?
  var name: String?
  var phone: String?

  static var tableNames: [Name] { ["people", "phones"] }

  func columns(for table: TableInfo) throws -> RecordColumns {
    switch table.name {
    case "people": ["id": id, "name": name]
    case "phones": ["id": id, "phone": phone]
    default: [:]
    }
  }

  func fill(from columns: RecordColumns) throws {
    id = columns["id"]?.stringValue
    name = columns["name"]?.stringValue
    phone = columns["phone"]?.stringValue
  }
}

/// A view model, which belongs to the main actor.
@MainActor private final class NoteModel {
  var id = ""
  var title: String?
  var saved = 0
}

extension NoteModel: @MainActor MappedRecord {
  static var fields: [RecordField<NoteModel>] {
    [RecordField("id", \.id), RecordField("title", \.title)]
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

  @Test("objects of Codable classes take part in merges, chained, and stay themselves")
  func codableClass() throws {
    let (one, two, three) = (Badge(id: "a"), Badge(title: "two"), Badge(id: "c", done: true))
    let result = try one.merge(two).merge(three, override: true)
    #expect(result === one)
    // With override, the nil of the last one wins.
    #expect((one.id, one.title, one.done) == ("c", nil, true))
    #expect((two.id, two.title) == ("", "two"))
    try two.merge(Note(id: "n", title: "note"), override: true)
    #expect((two.id, two.title, two.done) == ("n", "note", nil))
  }

  @Test("an object that hands over columns by tables' names spans them, as in the seed's samples")
  func byTableName() async throws {
    let fixture = try await Fixture()
    let people = Table<RecordColumns>("people", [.text("id").primaryKey(), .text("name")])
    let phones = Table<RecordColumns>("phones", [.text("id").primaryKey(), .text("phone")])
    try await fixture.database.write { database throws in
      let person = Person()
      try person.merge(["id": "1", "name": "Ada"] as RecordColumns)
        .merge(["phone": "555"] as RecordColumns)
      try people.insert(person, in: database)
      try phones.insert(person, in: database)
    }
    try await fixture.database.read { database throws in
      let person = Person()
      for table in [people, phones] {
        try person.merge(try #require(try table.latest(in: database)), override: true)
      }
      #expect((person.id, person.name, person.phone) == ("1", "Ada", "555"))
      // An object takes another one's values, by the names of the tables.
      let other = Person()
      try other.merge(["phone": "777"] as RecordColumns).merge(person)
      #expect((other.name, other.phone) == ("Ada", "777"))
      #expect(try RecordColumns(of: person)["phone"] == "555")
    }
  }

  @Test("a merge with a record that hands over nothing is an error, not a merge without effect")
  func nothing() throws {
    struct Silent: VirtualRecord {
      func columns(for table: TableInfo) throws -> RecordColumns {
        table.name == "notes" ? ["id": "a"] : [:]
      }
      mutating func fill(from columns: RecordColumns) throws {}
    }
    let error = #expect(throws: RecordError.self) { try Badge().merge(Silent()) }
    #expect(error?.message.contains("list its tables in tableNames") == true)
    try Badge().merge([:] as RecordColumns)
  }

  @Test("a view model of the main actor is a record")
  @MainActor func mainActor() async throws {
    let fixture = try await Fixture()
    let model = NoteModel()
    (model.id, model.title, model.saved) = ("m", "typed", 3)
    let columns = try RecordColumns(of: model)
    try await fixture.database.write { _ = try Note.table.insert(columns, in: $0) }
    try await fixture.database.write {
      _ = try Note.all.where(Field("id") == "m").update(["title": "stored"], in: $0)
    }
    let row = try await fixture.database.read {
      try Note.all.records(as: RecordColumns.self).first($0)
    }
    try model.merge(try #require(row), override: true)
    #expect((model.id, model.title, model.saved) == ("m", "stored", 3))
  }

  @Test("a property or a coding key names a column, which the compiler checks")
  func names() {
    #expect(Field(\Badge.title).name == "title")
    #expect(Field(\Badge.title.debugDescription).name != "title")
    let wrong = RecordField<Badge>("done", \.done)
    var badge = Badge()
    let error = #expect(throws: RecordError.self) { try badge.fill(from: ["done": 7]) }
    #expect(error?.column == wrong.name)
    _ = badge
    badge = Badge()
  }
}
