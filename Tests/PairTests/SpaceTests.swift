import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Several spaces in one file, with real programs.
@Suite("Several spaces", .hangLimit)
struct SpaceTests {
  private static let shopping = """
    CREATE TABLE shopping(id INTEGER PRIMARY KEY, what TEXT, shop INTEGER REFERENCES shops(id));
    CREATE TABLE shops(id INTEGER PRIMARY KEY, name TEXT);
    """

  /// A file with notes in a private space, and shopping in a shared one.
  private func device(
    _ server: Server, own space: String, token: String? = nil
  ) async throws -> Device {
    let device = try await Device.joined(server.url, space: space, token: token)
    try await device.write(Self.shopping)
    let family = try await device.open().spaces.join("family", server: server.url)
    try await family.track("shopping", "shops")
    return device
  }

  private let bought = """
    SELECT what, name FROM shopping LEFT JOIN shops ON shops.id = shop ORDER BY 1
    """

  @Test(
    "private and shared tables are in one file, and one sync exchanges all",
    arguments: StoreKind.allCases)
  func shared(_ store: StoreKind) async throws {
    let server = try await Server.start(store)
    let (ada, bob) = (try await device(server, own: "ada"), try await device(server, own: "bob"))
    try await ada.write(
      """
      INSERT INTO notes VALUES ('n', 'secret', 1); INSERT INTO shops VALUES (1, 'corner');
      INSERT INTO shopping VALUES (1, 'milk', 1)
      """)
    try await bob.write(
      "INSERT INTO shops VALUES (1, 'market'); INSERT INTO shopping VALUES (1, 'tea', 1)")
    for _ in 0..<2 { for device in [ada, bob] { try await device.ferry("sync") } }
    for device in [ada, bob] {
      #expect(try await device.rows(bought) == [["milk", "corner"], ["tea", "market"]])
      #expect(
        try await device.ferry("verify", "--in", "family").output.contains("4 rows of 2 tables"))
      #expect(try await device.open().spaces.replica(of: "family").verify().isEqual)
    }
    #expect(try await ada.count() == 1)
    #expect(try await bob.count() == 0)
    let lines = try JSONLine.all(await ada.ferry("spaces", "--json").output)
    #expect(lines.map { $0.text("space") } == ["ada", "family"])
    #expect(try await server.head(of: "ada") == 1)
    #expect(try await server.head(of: "family") == 4)
  }

  @Test("a space that rejects the token does not stop the others, and has a line of its own")
  func refused() async throws {
    let server = try await Server.start(.embedded)
    let token = try await server.token("admin", space: "ada")
    let device = try await device(server, own: "ada", token: token)
    try await device.write(
      "INSERT INTO notes VALUES ('n', 'kept', 1); INSERT INTO shops VALUES (1, 'x')")
    let finished = try await device.ferry("sync", exits: 4)
    #expect(finished.output == "ada: 1 pushed\n")
    #expect(finished.error.contains("ferry: space family: "))
    #expect(finished.error.contains("the token is not for space family"))
    #expect(try await device.open().spaces.replica(of: "family").status().pending == 1)
    // The library names the failure as well, when all spaces have ended.
    try await device.write("INSERT INTO notes VALUES ('m', 'kept', 2)")
    let replica = try await device.open()
    await #expect(throws: ReplicaError.self) { try await replica.sync() }
    #expect(try await replica.status().pending == 0)
    let results = try await replica.spaces.sync()
    #expect(results.map(\.space) == ["ada", "family"])
    #expect(try results[0].result.get().pushed == 0)
    // With a separate token, the space syncs.
    try await device.ferry("join", "family", "--token", server.token("admin", space: "family"))
    try await device.ferry("sync")
    #expect(try await device.open().spaces.replica(of: "family").status().pending == 0)
  }

  @Test("a watch follows a space that another process joins, and goes on when one space is refused")
  func watched() async throws {
    let server = try await Server.start(.embedded)
    let (ada, bob) = (
      try await Device.joined(server.url, space: "ada"), try await device(server, own: "bob")
    )
    try await ada.write(Self.shopping)
    let watch = try ada.start("sync", "--watch")
    _ = try await watch.line { $0.hasSuffix("connected") }
    try await ada.ferry("join", "family")
    try await ada.ferry("track", "shopping", "shops", "--in", "family")
    try await bob.write("INSERT INTO shopping VALUES (1, 'bread', NULL)")
    try await bob.ferry("sync")
    try await eventually("the other's bread", from: watch) {
      try await ada.rows(bought) == [["bread", .null]]
    }
    try await ada.write("INSERT INTO shopping VALUES (2, 'salt', NULL)")
    try await eventually("the salt", from: watch) {
      try await bob.ferry("sync")
      return try await bob.rows(bought) == [["bread", .null], ["salt", .null]]
    }
    watch.send(SIGINT)
    _ = try await watch.exitStatus()
  }

  @Test(
    "another program writes to tables of all spaces in one transaction",
    arguments: OtherWriter.allCases)
  func others(_ writer: OtherWriter) async throws {
    let server = try await Server.start(.embedded)
    let device = try await device(server, own: "ada")
    let finished = try await writer.run(
      [
        "BEGIN; INSERT INTO notes VALUES ('a', 'x', 1); INSERT INTO shops VALUES (7, 'y'); COMMIT",
        "BEGIN; INSERT INTO notes VALUES ('b', 'x', 1); INSERT INTO shops VALUES (8, 'y'); ROLLBACK",
      ], on: device.path)
    #expect(finished.status == .exited(0), "\(finished.error)")
    let replica = try await device.open()
    #expect(try await replica.operations.pending().count == 1)
    #expect(try await replica.spaces.replica(of: "family").operations.pending().count == 1)
    #expect(try await device.ferry("sync").output == "ada: 1 pushed\nfamily: 1 pushed\n")
  }

  @Test("hints name the space, and so do the lines of push, pull and a watch")
  func hints() async throws {
    let server = try await Server.start(.embedded)
    let ada = try await device(server, own: "ada")
    try await ada.write("INSERT INTO shops VALUES (1, 'corner')")
    #expect(try await ada.ferry("push").output == "ada: nothing to exchange\nfamily: 1 pushed\n")
    let bob = try await Device.joined(server.url, space: "bob")
    try await bob.ferry("join", "family")
    let pull = try await bob.ferry("pull")
    #expect(pull.output.contains("family: 1 pulled"))
    #expect(pull.error.contains("`ferry track --create shops --in family`"), "\(pull.error)")
    let watch = try ada.start("sync", "--watch")
    _ = try await watch.line { $0.hasSuffix("family: connected") }
    try await ada.write("INSERT INTO shops VALUES (2, 'market')")
    _ = try await watch.line { $0.hasSuffix("family: 1 pushed") }
    watch.send(SIGINT)
    _ = try await watch.exitStatus()
  }

  @Test("the first line of a watch names its space when the file's other space has not connected")
  func namedFromTheStart() async throws {
    let (silent, server) = (
      try await Server.start(.embedded), try await Server.start(.embedded)
    )
    let device = try await Device.joined(silent.url, space: "ada")
    try await device.ferry("join", "family", "--server", server.url)
    silent.send(SIGSTOP)
    let watch = try device.start("sync", "--watch")
    let first = try await watch.line { $0.hasSuffix("connected") }
    #expect(first.hasSuffix("family: connected"))
    silent.send(SIGCONT)
    _ = try await watch.line { $0.hasSuffix("ada: connected") }
    watch.send(SIGINT)
    _ = try await watch.exitStatus()
  }

  @Test("a process that is under way goes on when another one leaves a space")
  func leftElsewhere() async throws {
    let server = try await Server.start(.embedded)
    let device = try await device(server, own: "ada")
    let watch = try device.start("sync", "--watch")
    _ = try await watch.line { $0.hasSuffix("connected") }
    let replica = try await device.open()
    let family = try await replica.spaces.replica(of: "family")
    try await device.ferry("leave", "family")
    await #expect(throws: ReplicaError.self) { try await family.status() }
    try await device.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try await eventually("the watch to send", from: watch) { try await server.head(of: "ada") == 1 }
    #expect(try await replica.spaces.sync().map(\.space) == ["ada"])
    watch.send(SIGINT)
    _ = try await watch.exitStatus()
  }

  @Test("joining a space again keeps its server, and corrects a token that a watch waits for")
  func joinedAgain() async throws {
    let server = try await Server.start(.embedded)
    let other = try await Server.start(.embedded)
    let token = try await other.token("admin", space: "club")
    let device = try await Device.joined(server.url, space: "ada")
    try await device.write("CREATE TABLE club(id TEXT PRIMARY KEY); INSERT INTO club VALUES ('c')")
    try await device.ferry(
      "join", "club", "--server", other.url, "--token", String(token.reversed()))
    try await device.ferry("track", "club", "--in", "club")
    let watch = try device.start("sync", "--watch")
    _ = try await watch.line { $0.contains("space club has stopped") }
    try await device.ferry("join", "club", "--token", token)
    #expect(try await device.open().spaces.replica(of: "club").status().server?.url == other.url)
    try await eventually("the watch to send", from: watch) {
      try await other.head(of: "club", token: token) == 1
    }
    watch.send(SIGINT)
    _ = try await watch.exitStatus()
  }

  @Test("a space is left after a check for unsent work, and can be joined again")
  func left() async throws {
    let server = try await Server.start(.embedded)
    let device = try await device(server, own: "ada")
    try await device.write(
      "INSERT INTO shops VALUES (1, 'x'); INSERT INTO shopping VALUES (1, 'milk', 1)")
    let refused = try await device.ferry("leave", "family", exits: 1)
    #expect(refused.error.contains("its server does not have 2 operations of this device"))
    try await device.ferry("sync")
    try await device.ferry("leave", "family")
    #expect(try await device.count("shopping") == 0)
    #expect(try await device.ferry("spaces").output.contains("family") == false)
    try await device.ferry("sync", "--in", "family", exits: 1)
    try await device.ferry("join", "family")
    try await device.ferry("track", "shopping", "shops", "--in", "family")
    try await device.ferry("sync")
    #expect(try await device.rows(bought) == [["milk", "x"]])
  }

  @Test(
    "private and shared rows are in one table, and a row moves between spaces",
    arguments: StoreKind.allCases)
  func rows(_ store: StoreKind) async throws {
    let server = try await Server.start(store)
    let schema = "CREATE TABLE tasks(id TEXT PRIMARY KEY, list TEXT, title TEXT)"
    var devices: [Device] = []
    for name in ["ada", "bob"] {
      let device = try await Device.joined(server.url, space: name, schema: schema, tracking: [])
      try await device.ferry("join", "family")
      try await device.ferry("track", "tasks", "--space-column", "list")
      devices.append(device)
    }
    let (ada, bob) = (devices[0], devices[1])
    try await ada.write(
      "INSERT INTO tasks VALUES ('1', 'ada', 'mine'), ('2', 'family', 'ours'), ('3', 'attic', 'local')"
    )
    try await bob.write(
      "INSERT INTO tasks VALUES ('4', 'bob', 'his'), ('5', 'family', 'ours, too')")
    for device in [ada, bob, ada] { try await device.ferry("sync") }
    let tasks = "SELECT id FROM tasks ORDER BY id"
    #expect(try await ada.rows(tasks) == [["1"], ["2"], ["3"], ["5"]])
    #expect(try await bob.rows(tasks) == [["2"], ["4"], ["5"]])
    // A private row is shared, and a shared one becomes private.
    try await ada.write("UPDATE tasks SET list = 'family' WHERE id = '1'")
    try await bob.write("UPDATE tasks SET list = 'bob' WHERE id = '2'")
    for device in [ada, bob, ada] { try await device.ferry("sync") }
    #expect(try await ada.rows(tasks) == [["1"], ["3"], ["5"]])
    #expect(try await bob.rows(tasks) == [["1"], ["2"], ["4"], ["5"]])
    for device in [ada, bob] {
      let replica = try await device.open()
      let family = try await replica.spaces.replica(of: "family")
      #expect(try await replica.verify().isEqual)
      #expect(try await family.verify().isEqual)
    }
    #expect(try await server.head(of: "ada") == 2)
    // Another space joined by a file gets the rows waiting for it.
    try await ada.ferry("join", "attic")
    try await ada.ferry("sync")
    #expect(try await server.head(of: "attic") == 1)
    try await ada.ferry("leave", "attic")
    #expect(try await ada.rows(tasks) == [["1"], ["5"]])
  }

  @Test(
    "a device with new names syncs a space that it joins later, and an upload-only table stays one")
  func renamedTable() async throws {
    let server = try await Server.start(.embedded)
    var devices: [Device] = []
    for name in ["ada", "bob"] {
      let device = try await Device.joined(
        server.url, space: name, schema: "CREATE TABLE memos(id TEXT PRIMARY KEY, space, text)",
        tracking: [])
      try await device.ferry("track", "memos", "--space-column", "space")
      devices.append(device)
    }
    let (ada, bob) = (devices[0], devices[1])
    try await ada.write("CREATE TABLE readings(id TEXT PRIMARY KEY, space)")
    try await ada.ferry("track", "readings", "--space-column", "space", "--upload-only")
    try await ada.ferry("rename", "memos", "body", "--column", "text")
    try await ada.ferry("rename", "memos", "plans")
    for device in devices { try await device.ferry("join", "home") }
    try await ada.write("INSERT INTO plans VALUES ('a', 'home', 'from ada')")
    try await bob.write("INSERT INTO memos VALUES ('b', 'home', 'from bob')")
    try await bob.write("CREATE TABLE readings(id TEXT PRIMARY KEY, space)")
    try await bob.ferry("track", "readings", "--space-column", "space")
    try await bob.write("INSERT INTO readings VALUES ('r', 'home')")
    for device in [ada, bob, ada] { try await device.ferry("sync") }
    let expected: [[Value]] = [["a", "from ada"], ["b", "from bob"]]
    #expect(try await ada.rows("SELECT id, body FROM plans ORDER BY id") == expected)
    #expect(try await bob.rows("SELECT id, text FROM memos ORDER BY id") == expected)
    #expect(try await ada.count("readings") == 0)
    for device in devices {
      let home = try await device.open().spaces.replica(of: "home")
      #expect(try await home.verify().isEqual)
      #expect(try await home.waitingChanges(limit: 9).isEmpty)
    }
  }

  @Test("conflicts are those of each space")
  func apart() async throws {
    let server = try await Server.start(.embedded)
    let (ada, bob) = (try await device(server, own: "ada"), try await device(server, own: "bob"))
    try await ada.write("INSERT INTO shops VALUES (1, 'corner')")
    for device in [ada, bob] { try await device.ferry("sync") }
    for (device, name) in [(ada, "first"), (bob, "second")] {
      try await device.write("UPDATE shops SET name = '\(name)'")
    }
    for device in [ada, bob, ada] { try await device.ferry("sync") }
    #expect(try await ada.rows("SELECT name FROM shops") == bob.rows("SELECT name FROM shops"))
    #expect(try await ada.open().conflicts(limit: 9).isEmpty)
    let both = [
      try await ada.open().spaces.replica(of: "family"),
      try await bob.open().spaces.replica(of: "family"),
    ]
    #expect(try await both[0].conflicts(limit: 9).count + both[1].conflicts(limit: 9).count > 0)
  }
}
