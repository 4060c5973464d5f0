// swift-tools-version: 6.2
// The manifest reads as the architecture: bottom to top, and nobody imports upward.
// Client and server meet only in FerryProtocol. A mirror is a client of Ferry's, and missions' content in a
// bucket has a client of its own.
import PackageDescription

/// Ferry's own builds set FERRY_OPTIMISED, to 0 or 1: warnings are errors then. Packages that depend on
/// Ferry set nothing, and a newer compiler of theirs may warn.
let own = Context.environment["FERRY_OPTIMISED"]

let strict: [SwiftSetting] =
  [.swiftLanguageMode(.v6)] + (own == nil ? [] : [.treatAllWarnings(as: .error)])

/// `make test` optimises all but the tests, so that worlds and servers are several times as fast.
/// Assertions stay. Whole modules at once take less than half of the time that single files take.
/// Packages that depend on Ferry cannot have such flags.
let optimised =
  own == "1"
  ? strict
    + [
      .unsafeFlags(
        ["-O", "-assert-config", "Debug", "-whole-module-optimization", "-num-threads", "2"],
        .when(configuration: .debug))
    ]
  : strict

/// The modules that a module exports again. A target that imports it names all of them: SwiftPM compiles a
/// target again only if a module that it names has changed.
let exported = [
  "Ferry": [
    "FerryCaching", "FerryMissions", "FerryNetworking", "FerryPatches", "FerryPersistence",
    "FerryProtocol", "FerrySyncClient",
  ],
  "FerryTestSupport": ["FerryLaboratory"],
]

/// Adds the modules that the named ones export again.
func complete(_ needs: [Target.Dependency]) -> [Target.Dependency] {
  var names = needs.compactMap { if case .byNameItem(let name, _) = $0 { name } else { nil } }
  let named = names.count
  for other in names.flatMap({ exported[$0] ?? [] }) where !names.contains(other) {
    names.append(other)
  }
  return needs + names[named...].map { .byName(name: $0) }
}

func library(_ name: String, _ path: String, resources: [Resource] = []) -> Target {
  .target(name: name, path: path, resources: resources, swiftSettings: optimised)
}

func command(_ name: String, _ path: String) -> Target {
  .executableTarget(name: name, path: path, swiftSettings: optimised)
}

/// Tests in a folder of their name.
func tests(_ name: String, resources: [Resource] = []) -> Target {
  .testTarget(
    name: name, dependencies: complete(["FerryTestSupport"]), path: "Tests/\(name)",
    resources: resources, swiftSettings: strict)
}

extension Target {
  func needs(_ modules: Dependency...) -> Target {
    dependencies += complete(modules)
    return self
  }
}

func system(_ name: String, _ path: String, _ pkgConfig: String?, apt: String) -> Target {
  .systemLibrary(
    name: name, path: path, pkgConfig: pkgConfig, providers: [.apt([apt])])
}

/// What only systems without Apple's libraries need.
let elsewhere: [Platform] = [.linux, .android]

/// The package's only trait. SwiftPM passes the names of several to the compiler in an order that
/// changes from build to build, and would compile all of Ferry again each time.
let systemLibraries = "SystemLibraries"

/// A target that a build without the trait, and one for Apple's systems, does without.
func optional(_ name: String) -> Target.Dependency {
  .target(name: name, condition: .when(platforms: elsewhere, traits: [systemLibraries]))
}

/// The files of a page that a program contains: scripts, and the rest by their whole names.
func page(_ folder: String, scripts: String, _ others: String...) -> [Resource] {
  (scripts.split(separator: " ").map { "\($0).js" } + others)
    .map { .embedInCode("\(folder)/\($0)") }
}

/// The report page of ferry-sim.
let reportPage = page(
  "Report/Page",
  scripts:
    "kinds model scale phases lost view canvas marks pointer controls event-list start watch",
  "style.css")

/// The page for administrators in ferryd.
let consolePage = page(
  "Console/Page",
  scripts: "start api parts format chart server spaces devices members records conflicts schema "
    + "missions bundles declaration folder upload sha256 tokens",
  "index.html", "style.css")

let package = Package(
  name: "ferry",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .library(name: "Ferry", targets: ["Ferry"] + exported["Ferry", default: []]),
    .library(name: "FerryShell", targets: ["FerryShell"]),
    // Loaded by other programs: `.load libferry_sqlite` of the sqlite3 shell.
    .library(name: "ferry_sqlite", type: .dynamic, targets: ["FerrySQLiteExtension"]),
    .executable(name: "ferry", targets: ["FerryCommand"]),
    .executable(name: "ferryd", targets: ["FerryDaemon"]),
    .executable(name: "ferry-bench", targets: ["FerryBench"]),
    .executable(name: "ferry-sim", targets: ["FerrySim"]),
    .executable(name: "ferry-chaos", targets: ["FerryChaos"]),
    .executable(name: "ferry-tasks", targets: ["FerryTasks"]),
    .executable(name: "ferry-courses", targets: ["FerryCourses"]),
  ],
  traits: [
    .trait(
      name: systemLibraries,
      description: "Requests over libcurl and compression by zstd besides gzip (not on Apple)"),
    .default(enabledTraits: [systemLibraries]),
  ],
  targets: [
    // C libraries: a module map and a shim, each imported by one wrapper.
    system("CFerrySQLite", "Sources/CSQLite", "sqlite3", apt: "libsqlite3-dev"),
    system("CFerryPostgres", "Sources/CPostgres", "libpq", apt: "libpq-dev"),
    system("CFerryCurl", "Sources/CCurl", "libcurl", apt: "libcurl4-openssl-dev"),
    system("CFerryMicroHTTPD", "Sources/CMicroHTTPD", "libmicrohttpd", apt: "libmicrohttpd-dev"),
    system("CFerryZstd", "Sources/CZstd", "libzstd", apt: "libzstd-dev"),
    system("CFerryZlib", "Sources/CZlib", "zlib", apt: "zlib1g-dev"),
    system("CFerryOpenSSL", "Sources/COpenSSL", "libcrypto", apt: "libssl-dev"),
    system("CFerryLineEditor", "Sources/CLineEditor", "libedit", apt: "libedit-dev"),

    // Protocol: all that client and server share.
    library("FerryProtocol", "Protocol/FerryProtocol").needs("FerryPlatform"),

    // Sources: the system, SQLite with the protocol's values, and wrappers without a rule of Ferry's.
    library("FerryPlatform", "Sources/Platform"),
    library("FerrySQLite", "Sources/SQLite").needs(
      "FerryProtocol", "FerryPlatform", "CFerrySQLite"),
    library("FerryCompression", "Sources/Compression").needs(
      "FerryPlatform", optional("CFerryZstd"), "CFerryZlib"),
    library("FerryCryptography", "Sources/Cryptography").needs(
      .target(name: "CFerryOpenSSL", condition: .when(platforms: elsewhere))),
    library("FerryCommandLine", "Sources/CommandLine").needs("FerryPlatform"),

    // Client.
    library("FerryNetworking", "Client/Networking").needs(
      "FerryCryptography", "FerryPlatform", optional("CFerryCurl")),
    library("FerryCaching", "Client/Caching").needs(
      "FerryNetworking", "FerryCryptography", "FerrySQLite", "FerryPlatform"),
    library("FerryPersistence", "Client/Persistence").needs(
      "FerrySQLite", "FerryProtocol", "FerryPlatform"),
    library("FerrySyncClient", "Client/Sync").needs(
      "FerryPersistence", "FerryNetworking", "FerryCompression", "FerrySQLite", "FerryProtocol",
      "FerryPlatform"),
    library("FerryMissions", "Client/Missions").needs(
      "FerryNetworking", "FerryCryptography", "FerrySQLite", "FerryProtocol", "FerryPlatform"),
    library("FerryPatches", "Client/Patches").needs(
      "FerryCryptography", "FerryProtocol", "FerryPlatform"),
    library("Ferry", "Client/Ferry").needs(
      "FerryPatches", "FerryMissions", "FerrySyncClient", "FerryPersistence", "FerryCaching",
      "FerryNetworking", "FerryProtocol", "FerryPlatform"),
    // Pages of a web app over the client: its bundle, its bridge, and the services that it may call.
    library(
      "FerryShell", "Client/Shell",
      resources: [.embedInCode("Bridge/ferry.js"), .embedInCode("Bridge/ferry.d.ts")]
    ).needs(
      "FerryMissions", "FerrySyncClient", "FerryPersistence", "FerryNetworking",
      "FerryCryptography", "FerryProtocol", "FerryPlatform"),
    library("FerrySQLiteExtension", "Client/SQLiteExtension").needs(
      "FerrySyncClient", "FerrySQLite", "FerryPlatform"),
    command("FerryCommand", "Client/FerryCommand").needs(
      "Ferry", "FerryShell", "FerryCommandLine", "FerryPlatform", "CFerryLineEditor"),

    // Apps, as a user of the library writes them.
    command("FerryTasks", "Examples/Tasks").needs("Ferry"),
    command("FerryCourses", "Examples/Courses").needs("Ferry"),

    // Server.
    library("FerryHTTPServer", "Server/HTTP").needs(
      "FerryCompression", "FerryPlatform", "CFerryMicroHTTPD"),
    library("FerryPostgres", "Server/Postgres").needs(
      "FerryProtocol", "FerryPlatform", "CFerryPostgres"),
    // Missions' content in a folder, or in an S3-compatible store, whose client it is.
    library("FerryMissionServer", "Server/Missions").needs(
      "FerryNetworking", "FerryCryptography", "FerryProtocol", "FerryPlatform"),
    library("FerrySyncServer", "Server/Sync", resources: consolePage).needs(
      "FerryMissionServer", "FerryPostgres", "FerryHTTPServer", "FerryCryptography", "FerrySQLite",
      "FerryProtocol", "FerryPlatform"),
    // A device of a space whose tables are in PostgreSQL.
    library("FerryMirror", "Server/Mirror").needs(
      "FerryPostgres", "FerrySyncClient", "FerryPersistence", "FerryCryptography", "FerrySQLite",
      "FerryProtocol", "FerryPlatform"),
    command("FerryDaemon", "Server/FerryDaemon").needs(
      "FerryMirror", "FerrySyncServer", "FerryMissionServer", "FerryPostgres", "FerryHTTPServer",
      "FerrySyncClient", "FerryNetworking", "FerryCommandLine", "FerryCryptography", "FerrySQLite",
      "FerryProtocol", "FerryPlatform"),

    // Measuring and testing: real processes, a private PostgreSQL, and a disk in memory.
    library("FerryLaboratory", "Sources/Proving/Laboratory").needs(
      "FerryPostgres", "FerryProtocol", "CFerrySQLite"),
    command("FerryBench", "Sources/Proving/FerryBench").needs(
      "Ferry", "FerryLaboratory", "FerryPostgres", "FerryHTTPServer", "FerryCommandLine",
      "FerrySQLite", "FerryPlatform", "CFerrySQLite"),

    // The workload and the oracles, and the two instruments that use them.
    library("FerryConformance", "Sources/Proving/Conformance").needs(
      "FerryPostgres", "FerrySQLite", "FerryProtocol", "FerryPlatform"),
    library("FerrySimulation", "Sources/Proving/Simulation", resources: reportPage).needs(
      "Ferry", "FerryShell", "FerryConformance", "FerryLaboratory", "FerryMirror",
      "FerrySyncServer", "FerryMissionServer", "FerryPostgres", "FerryHTTPServer",
      "FerryCryptography", "FerrySQLite", "FerryPlatform"),
    command("FerrySim", "Sources/Proving/FerrySim").needs(
      "FerrySimulation", "FerryConformance", "FerryLaboratory", "FerrySyncServer",
      "FerryHTTPServer", "FerryPersistence", "FerryNetworking", "FerryCommandLine",
      "FerryCryptography", "FerryCompression", "FerryProtocol", "FerryPlatform"),
    command("FerryChaos", "Sources/Proving/FerryChaos").needs(
      "FerryConformance", "FerryLaboratory", "FerryPostgres", "FerryCommandLine", "FerrySQLite",
      "FerryProtocol"),

    // Tests: one folder a target, with a folder for each module in it.
    .target(
      name: "FerryTestSupport",
      dependencies: ["FerryLaboratory", "FerryPostgres", "FerryProtocol"],
      path: "Tests/TestSupport",
      swiftSettings: strict),
    tests("ProtocolTests").needs("FerrySQLite", "FerryProtocol"),
    tests("SourcesTests").needs(
      "FerryCommandLine", "FerryCryptography", "FerryCompression", "FerrySQLite", "FerryPlatform",
      "CFerrySQLite"),
    tests("NetworkingTests").needs(
      "FerryHTTPServer", "FerryCaching", "FerryNetworking", "FerryCryptography", "FerryCompression",
      "FerrySQLite", "FerryPlatform"),
    tests("SyncClientTests").needs(
      "FerrySyncClient", "FerryPersistence", "FerryNetworking", "FerryCompression", "FerrySQLite",
      "FerryProtocol", "FerryPlatform", "CFerrySQLite"),
    tests("MissionTests").needs(
      "FerryPatches", "FerryMissions", "FerryNetworking", "FerryCryptography", "FerrySQLite",
      "FerryProtocol", "FerryPlatform"),
    tests("ShellTests").needs(
      "FerryShell", "FerryMissions", "FerrySyncClient", "FerryPersistence", "FerryProtocol"),
    tests("SyncServerTests", resources: [.copy("Resources")]).needs(
      "FerrySyncServer", "FerryMissionServer", "FerryPostgres", "FerryHTTPServer",
      "FerryNetworking", "FerryCryptography", "FerrySQLite", "FerryProtocol", "FerryPlatform"),
    tests("MirrorTests").needs(
      "FerryMirror", "FerrySyncClient", "FerryPostgres", "FerryPersistence", "FerrySQLite",
      "FerryProtocol"),
    tests("SimulationTests").needs(
      "FerrySimulation", "FerryConformance", "FerrySyncServer", "FerryPostgres", "FerryHTTPServer",
      "FerryMissions", "FerrySyncClient", "FerryNetworking", "FerryCryptography", "FerrySQLite",
      "FerryProtocol", "FerryPlatform", "FerrySim"),
    tests("PairTests", resources: [.copy("Resources")]).needs(
      "Ferry", "FerryShell", "FerryMissionServer", "FerryPostgres", "FerryHTTPServer",
      "FerryCryptography", "FerryCompression", "FerrySQLite", "FerryPlatform", "FerryCommand",
      "FerryTasks", "FerryCourses", "FerryDaemon", "FerryMirror", "FerryBench", "FerryChaos"),
  ]
)

// `make quick AREA=sync` compiles the tests of one area and what they need, and nothing else.
let areas = [
  "protocol": ["ProtocolTests"],
  "sources": ["SourcesTests"],
  "sync": ["SyncClientTests"],
  "server": ["SyncServerTests"],
  "missions": ["MissionTests"],
  "network": ["NetworkingTests"],
  "mirror": ["MirrorTests"],
  "shell": ["ShellTests"],
]
if let area = Context.environment["FERRY_AREA"] {
  guard let tests = areas[area] else {
    fatalError("there is no area \(area); the areas are \(areas.keys.sorted())")
  }
  var (needed, left): (Set<String>, [String]) = ([], tests)
  while let name = left.popLast() {
    guard needed.insert(name).inserted else { continue }
    for dependency in package.targets.first(where: { $0.name == name })?.dependencies ?? [] {
      switch dependency {
      case .targetItem(let name, _), .byNameItem(let name, _): left.append(name)
      default: break
      }
    }
  }
  package.targets.removeAll { !needed.contains($0.name) }
  package.products = []
}
