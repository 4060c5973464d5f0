// swift-tools-version: 6.2
// The manifest reads as the architecture: bottom to top, and nobody imports upward.
// Client and server meet only in FerryProtocol, and in the mirror, which is a client.
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
    "FerryCaching", "FerryFiles", "FerryMissions", "FerryNetworking", "FerryPatches",
    "FerryPersistence", "FerryProtocol", "FerrySyncClient", "FerryTransport",
  ],
  "FerryMissions": ["FerryFiles"],
  "FerryNetworking": ["FerryTransport"],
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
  "Page",
  scripts: "start api parts format chart server spaces devices records conflicts schema missions "
    + "bundles declaration folder upload sha256 tokens",
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

    // Sources: wrappers without a rule of Ferry's in them.
    library("FerryPlatform", "Sources/Platform"),
    library("FerryExecutors", "Sources/Executors"),
    library("FerrySQLite", "Sources/SQLite").needs("CFerrySQLite", "FerryPlatform"),
    library("FerryTracing", "Sources/Tracing").needs("FerryProtocol", "FerryPlatform"),
    library("FerryStoredValues", "Sources/StoredValues").needs("FerryProtocol", "FerrySQLite"),
    library("FerryCompression", "Sources/Compression").needs(
      optional("CFerryZstd"), "CFerryZlib", "FerryPlatform"),
    library("FerryCryptography", "Sources/Cryptography").needs(
      .target(name: "CFerryOpenSSL", condition: .when(platforms: elsewhere))),
    library("FerryCommandLine", "Sources/CommandLine").needs("FerryPlatform"),
    library("FerryLineEditor", "Sources/LineEditor").needs(
      "CFerryLineEditor", "FerryExecutors", "FerryPlatform"),

    // Client.
    library("FerryTransport", "Client/Transport").needs("FerryPlatform"),
    library("FerryCurlTransport", "Client/CurlTransport").needs(
      "CFerryCurl", "FerryCryptography", "FerryTransport", "FerryPlatform"),
    library("FerryNetworking", "Client/Networking").needs(
      "FerryTransport", optional("FerryCurlTransport"), "FerryExecutors", "FerryPlatform"),
    library("FerryCaching", "Client/Caching").needs(
      "FerryNetworking", "FerrySQLite", "FerryCryptography", "FerryExecutors", "FerryPlatform"),
    library("FerryPersistence", "Client/Persistence").needs(
      "FerryProtocol", "FerrySQLite", "FerryStoredValues", "FerryExecutors", "FerryPlatform"),
    library("FerrySyncClient", "Client/Sync").needs(
      "FerryPersistence", "FerryProtocol", "FerrySQLite", "FerryStoredValues", "FerryNetworking",
      "FerryCompression", "FerryExecutors", "FerryTracing", "FerryPlatform"),
    library("FerryFiles", "Client/Files").needs(
      "FerryProtocol", "FerryCryptography", "FerrySQLite", "FerryExecutors", "FerryPlatform"),
    library("FerryMissions", "Client/Missions").needs(
      "FerryFiles", "FerryProtocol", "FerryCryptography", "FerrySQLite", "FerryNetworking",
      "FerryExecutors", "FerryPlatform"),
    library("FerryPatches", "Client/Patches").needs(
      "FerryProtocol", "FerryCryptography", "FerryExecutors", "FerryPlatform"),
    library("Ferry", "Client/Ferry").needs(
      "FerryPersistence", "FerrySyncClient", "FerryMissions", "FerryCaching", "FerryFiles",
      "FerryNetworking", "FerryPatches", "FerryProtocol", "FerryPlatform"),
    // Pages of a web app over the client: its bundle, its bridge, and the services that it may call.
    library(
      "FerryShell", "Client/Shell",
      resources: [.embedInCode("Bridge/ferry.js"), .embedInCode("Bridge/ferry.d.ts")]
    ).needs(
      "FerrySyncClient", "FerryMissions", "FerryPersistence", "FerryNetworking", "FerryTransport",
      "FerryProtocol", "FerryCryptography", "FerryExecutors", "FerryPlatform"),
    library("FerrySQLiteExtension", "Client/SQLiteExtension").needs(
      "FerrySyncClient", "FerrySQLite", "FerryPlatform"),
    library("FerryTableImport", "Client/Import").needs("FerryProtocol", "FerryPlatform"),
    command("FerryCommand", "Client/FerryCommand").needs(
      "Ferry", "FerryShell", "FerryTableImport", "FerryCommandLine", "FerryLineEditor",
      "FerryProtocol", "FerryTransport", "FerryPlatform"),

    // Apps, as a user of the library writes them.
    command("FerryTasks", "Examples/Tasks").needs("Ferry"),
    command("FerryCourses", "Examples/Courses").needs("Ferry"),

    // Server.
    library("FerryHTTPServer", "Server/HTTP").needs(
      "CFerryMicroHTTPD", "FerryCompression", "FerryExecutors", "FerryPlatform"),
    library("FerryPostgres", "Server/Postgres").needs(
      "CFerryPostgres", "FerryProtocol", "FerryExecutors", "FerryPlatform"),
    library("FerryMissionServer", "Server/Missions").needs(
      "FerryProtocol", "FerryCryptography", "FerryExecutors", "FerryPlatform"),
    // Missions' content in an S3-compatible store, whose client it is.
    library("FerryObjectStore", "Server/ObjectStore").needs(
      "FerryMissionServer", "FerryProtocol", "FerryCryptography", "FerryTransport", "FerryPlatform"),
    library("FerryConsole", "Server/Console", resources: consolePage),
    library("FerrySyncServer", "Server/Sync").needs(
      "FerryConsole", "FerryProtocol", "FerrySQLite", "FerryStoredValues", "FerryPostgres",
      "FerryHTTPServer", "FerryCryptography", "FerryExecutors", "FerryMissionServer",
      "FerryTracing", "FerryPlatform"),
    // A device of a space whose tables are in PostgreSQL.
    library("FerryMirror", "Server/Mirror").needs(
      "FerrySyncClient", "FerryPersistence", "FerrySQLite", "FerryPostgres", "FerryProtocol",
      "FerryCryptography", "FerryExecutors", "FerryPlatform"),
    command("FerryDaemon", "Server/FerryDaemon").needs(
      "FerryMirror", "FerryPostgres", "FerrySQLite", "FerrySyncClient", "FerrySyncServer",
      "FerryMissionServer", "FerryProtocol", "FerryCryptography", "FerryNetworking",
      "FerryExecutors", "FerryCommandLine", "FerryHTTPServer", "FerryTracing", "FerryObjectStore",
      "FerryPlatform"),

    // Measuring and testing: real processes and a private PostgreSQL.
    library("FerryLaboratory", "Sources/Proving/Laboratory").needs(
      "FerryPostgres", "FerryProtocol"),
    command("FerryBench", "Sources/Proving/FerryBench").needs(
      "Ferry", "FerryPersistence", "FerrySyncClient", "FerryProtocol", "FerryNetworking",
      "FerryPostgres", "CFerrySQLite", "FerrySQLite", "FerryCommandLine", "FerryHTTPServer",
      "FerryLaboratory", "FerryExecutors"),

    // Sources/Proving: the workload and the oracles, and the two instruments that use them.
    library("FerryConformance", "Sources/Proving/Conformance").needs(
      "FerryProtocol", "FerrySQLite", "FerryStoredValues", "FerryPostgres", "FerryPlatform"),
    library("FerrySimulatedDisk", "Sources/Proving/SimulatedDisk").needs("CFerrySQLite"),
    library("FerrySimulation", "Sources/Proving/Simulation", resources: reportPage).needs(
      "FerryConformance", "FerrySimulatedDisk", "FerryPersistence", "FerrySyncClient",
      "FerrySyncServer", "FerryHTTPServer", "FerryNetworking", "FerryProtocol", "FerryExecutors",
      "FerrySQLite", "FerryStoredValues", "FerryPostgres", "FerryMissions", "FerryMissionServer",
      "FerryCryptography", "Ferry", "FerryShell", "FerryMirror"),
    command("FerrySim", "Sources/Proving/FerrySim").needs(
      "FerrySimulation", "FerryCommandLine", "FerryLaboratory", "FerryConformance", "FerryProtocol",
      "FerrySyncServer", "FerryHTTPServer", "FerryTracing", "FerryNetworking", "FerryTableImport",
      "FerryCompression", "FerryCryptography"),
    command("FerryChaos", "Sources/Proving/FerryChaos").needs(
      "FerryConformance", "FerryProtocol", "FerryLaboratory", "FerryPostgres", "FerrySQLite",
      "FerryCommandLine"),

    // Tests: one folder a target.
    .target(
      name: "FerryTestSupport",
      dependencies: ["FerryLaboratory", "FerryPostgres", "FerryProtocol"],
      path: "Tests/TestSupport",
      swiftSettings: strict),
    tests("ProtocolTests").needs("FerryProtocol", "FerrySQLite", "FerryStoredValues"),
    tests("TracingTests").needs("FerryTracing"),
    tests("SQLiteTests").needs("FerrySQLite", "CFerrySQLite"),
    tests("CompressionTests").needs("FerryCompression"),
    tests("CryptographyTests").needs("FerryCryptography"),
    tests("CommandLineTests").needs("FerryCommandLine", "FerryLineEditor", "FerryPlatform"),
    tests("NetworkingTests").needs(
      "FerryNetworking", "FerryTransport", "FerryCurlTransport", "FerryCryptography"),
    tests("CachingTests").needs(
      "FerryCaching", "FerryNetworking", "FerrySQLite", "FerryHTTPServer"),
    tests("HTTPServerTests").needs("FerryHTTPServer", "FerryCompression", "FerryExecutors"),
    tests("PostgresTests").needs("FerryPostgres", "FerryExecutors"),
    tests("MirrorTests").needs(
      "FerryMirror", "FerryPersistence", "FerryPostgres", "FerryProtocol", "FerrySQLite"),
    tests("TableImportTests").needs("FerryTableImport", "FerryProtocol"),
    tests("SyncClientTests").needs(
      "FerrySyncClient", "FerryPersistence", "FerryNetworking", "FerrySQLite", "FerryProtocol",
      "FerryCompression", "FerryExecutors", "CFerrySQLite", "FerrySimulatedDisk"),
    tests("PersistenceTests").needs(
      "FerryPersistence", "FerryProtocol", "FerrySQLite", "FerryStoredValues", "FerryExecutors"),
    tests("FileStoreTests").needs(
      "FerryFiles", "FerryProtocol", "FerryCryptography", "FerrySQLite"),
    tests("ShellTests").needs(
      "FerryShell", "FerrySyncClient", "FerryPersistence", "FerryProtocol", "FerryMissions"),
    tests("MissionServerTests").needs("FerryMissionServer", "FerryProtocol", "FerryCryptography"),
    tests("ObjectStoreTests").needs(
      "FerryObjectStore", "FerryMissionServer", "FerryNetworking", "FerryHTTPServer",
      "FerryProtocol", "FerryCryptography"),
    tests("MissionTests").needs(
      "FerryMissions", "FerryFiles", "FerryNetworking", "FerryCryptography", "FerrySQLite",
      "FerryProtocol", "FerryExecutors", "FerrySimulatedDisk"),
    tests("PatchTests").needs(
      "FerryPatches", "FerryProtocol", "FerryCryptography", "FerryPlatform"),
    tests("SyncServerTests", resources: [.copy("Resources")]).needs(
      "FerrySyncServer", "FerryMissionServer", "FerryPostgres", "FerryCryptography",
      "FerryHTTPServer", "FerryProtocol", "FerrySQLite", "FerryExecutors", "FerrySimulatedDisk"),
    tests("ConformanceTests").needs(
      "FerryConformance", "FerryProtocol", "FerrySQLite", "FerryPostgres", "FerrySyncClient",
      "FerrySyncServer"),
    tests("SimulatedDiskTests").needs("FerrySimulatedDisk", "FerrySQLite"),
    tests("SimulationTests").needs(
      "FerrySimulation", "FerryConformance", "FerryProtocol", "FerryHTTPServer", "FerryNetworking",
      "FerrySim", "FerrySimulatedDisk", "FerryMissions", "FerryCryptography", "FerryExecutors",
      "FerryFiles", "FerryPostgres"),
    tests("PairTests", resources: [.copy("Resources")]).needs(
      "Ferry", "FerryShell", "FerrySyncClient", "FerryNetworking", "FerryCompression",
      "FerryExecutors", "FerryCryptography", "FerryHTTPServer", "FerrySQLite", "FerryProtocol",
      "FerryCommand", "FerryDaemon", "FerryChaos", "FerryBench", "FerryTasks", "FerryPostgres",
      "FerryCourses", "FerryMissionServer", "FerryPatches"),
  ]
)

// `make quick AREA=sync` compiles the tests of one area and what they need, and nothing else.
let areas = [
  "protocol": ["ProtocolTests"],
  "sync": ["PersistenceTests", "SyncClientTests"],
  "server": ["PostgresTests", "SyncServerTests"],
  "missions": ["FileStoreTests", "MissionTests", "MissionServerTests"],
  "network": ["NetworkingTests", "CachingTests", "HTTPServerTests"],
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
