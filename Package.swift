// swift-tools-version: 6.2
// The manifest reads as the architecture: bottom to top, and nobody imports upward.
// Client and server meet only in FerryProtocol.
import PackageDescription

let strict: [SwiftSetting] = [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]

func library(_ name: String, _ path: String, needs: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: needs, path: path, swiftSettings: strict)
}

func command(_ name: String, _ path: String, needs: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: needs, path: path, swiftSettings: strict)
}

func tests(_ name: String, needs: [Target.Dependency], resources: [Resource] = []) -> Target {
  .testTarget(
    name: name, dependencies: needs, path: "Tests/\(name)", resources: resources,
    swiftSettings: strict)
}

func system(_ name: String, _ pkgConfig: String?, apt: String) -> Target {
  .systemLibrary(
    name: name, path: "Sources/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

let package = Package(
  name: "ferry",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .library(name: "Ferry", targets: ["Ferry"]),
    .executable(name: "ferry", targets: ["FerryCommand"]),
    .executable(name: "ferryd", targets: ["FerryDaemon"]),
    .executable(name: "ferry-bench", targets: ["FerryBench"]),
    .executable(name: "ferry-sim", targets: ["FerrySim"]),
    .executable(name: "ferry-chaos", targets: ["FerryChaos"]),
  ],
  targets: [
    // C libraries: a module map and a shim, each imported by one wrapper.
    system("CSQLite", "sqlite3", apt: "libsqlite3-dev"),
    system("CPostgres", "libpq", apt: "libpq-dev"),
    system("CCurl", "libcurl", apt: "libcurl4-openssl-dev"),
    system("CMicroHTTPD", "libmicrohttpd", apt: "libmicrohttpd-dev"),
    system("CZstd", "libzstd", apt: "libzstd-dev"),
    system("CZlib", "zlib", apt: "zlib1g-dev"),
    system("COpenSSL", "libcrypto", apt: "libssl-dev"),

    // Protocol: all that client and server share.
    library("FerryProtocol", "Protocol/FerryProtocol"),

    // Ground: wrappers without a rule of Ferry's in them.
    library("Executors", "Sources/Executors"),
    library("SQLite", "Sources/SQLite", needs: ["CSQLite"]),
    library("StoredValues", "Sources/StoredValues", needs: ["FerryProtocol", "SQLite"]),
    library("Compression", "Sources/Compression", needs: ["CZstd", "CZlib"]),
    library("Cryptography", "Sources/Cryptography", needs: ["COpenSSL"]),
    library("CommandLineKit", "Sources/CommandLineKit"),

    // Client.
    library("Networking", "Client/Networking", needs: ["CCurl", "Executors"]),
    library(
      "Caching", "Client/Caching", needs: ["Networking", "SQLite", "Cryptography", "Executors"]),
    library(
      "SyncClient", "Client/Sync",
      needs: [
        "FerryProtocol", "SQLite", "StoredValues", "Networking", "Compression", "Executors",
      ]),
    library(
      "Missions", "Client/Missions",
      needs: ["FerryProtocol", "Cryptography", "SQLite", "Networking", "Executors"]),
    library(
      "Ferry", "Client/Ferry",
      needs: ["SyncClient", "Missions", "Caching", "Networking", "FerryProtocol"]),
    library("TableImport", "Client/Import", needs: ["FerryProtocol"]),
    command(
      "FerryCommand", "Client/FerryCommand",
      needs: ["Ferry", "SyncClient", "TableImport", "CommandLineKit"]),

    // Server.
    library("HTTPServer", "Server/HTTP", needs: ["CMicroHTTPD", "Compression"]),
    library("Postgres", "Server/Postgres", needs: ["CPostgres"]),
    library(
      "MissionServer", "Server/Missions", needs: ["FerryProtocol", "Cryptography", "Executors"]),
    library(
      "SyncServer", "Server/Sync",
      needs: [
        "FerryProtocol", "SQLite", "StoredValues", "Postgres", "HTTPServer", "Cryptography",
        "Executors", "MissionServer",
      ]),
    command(
      "FerryDaemon", "Server/FerryDaemon",
      needs: [
        "SyncServer", "MissionServer", "FerryProtocol", "Cryptography", "Networking", "Executors",
        "CommandLineKit",
      ]),

    // Measuring and testing: real processes and a private PostgreSQL.
    library("Laboratory", "Sources/Laboratory", needs: ["Postgres"]),
    command(
      "FerryBench", "Sources/FerryBench",
      needs: [
        "Ferry", "SyncClient", "FerryProtocol", "Networking", "Postgres", "SQLite", "StoredValues",
        "CommandLineKit", "HTTPServer", "Laboratory",
      ]),

    // Proving: the workload and the oracles, and the two instruments that use them.
    library(
      "Conformance", "Sources/Conformance",
      needs: ["FerryProtocol", "SQLite", "StoredValues", "Postgres"]),
    library("SimulatedDisk", "Sources/SimulatedDisk", needs: ["CSQLite"]),
    library(
      "Simulation", "Sources/Simulation",
      needs: [
        "Conformance", "SimulatedDisk", "SyncClient", "SyncServer", "HTTPServer", "Networking",
        "FerryProtocol", "Executors", "SQLite", "StoredValues", "Postgres", "Missions",
        "MissionServer", "Cryptography",
      ]),
    command(
      "FerrySim", "Sources/FerrySim", needs: ["Simulation", "CommandLineKit", "Laboratory"]),
    command(
      "FerryChaos", "Sources/FerryChaos",
      needs: [
        "Conformance", "FerryProtocol", "Laboratory", "Postgres", "SQLite", "CommandLineKit",
      ]),

    // Tests: one folder a target.
    .target(
      name: "TestSupport", dependencies: ["Laboratory"], path: "Tests/TestSupport",
      swiftSettings: strict),
    .target(
      name: "StoreContracts", dependencies: ["SyncServer", "TestSupport"],
      path: "Tests/StoreContracts", swiftSettings: strict),
    tests("ProtocolTests", needs: ["FerryProtocol", "SQLite", "StoredValues", "TestSupport"]),
    tests("SQLiteTests", needs: ["SQLite", "TestSupport"]),
    tests("CompressionTests", needs: ["Compression", "TestSupport"]),
    tests("CryptographyTests", needs: ["Cryptography", "TestSupport"]),
    tests("CommandLineKitTests", needs: ["CommandLineKit", "TestSupport"]),
    tests("NetworkingTests", needs: ["Networking", "TestSupport"]),
    tests(
      "CachingTests", needs: ["Caching", "Networking", "SQLite", "HTTPServer", "TestSupport"]),
    tests("HTTPServerTests", needs: ["HTTPServer", "TestSupport"]),
    tests("PostgresTests", needs: ["Postgres", "TestSupport"]),
    tests("TableImportTests", needs: ["TableImport", "TestSupport"]),
    tests(
      "SyncClientTests",
      needs: ["SyncClient", "Networking", "SQLite", "FerryProtocol", "TestSupport"]),
    tests(
      "MissionServerTests",
      needs: ["MissionServer", "FerryProtocol", "Cryptography", "TestSupport"]),
    tests(
      "MissionTests",
      needs: [
        "Missions", "Networking", "Cryptography", "SQLite", "FerryProtocol", "Executors",
        "SimulatedDisk", "TestSupport",
      ]),
    tests(
      "SyncServerTests",
      needs: [
        "SyncServer", "StoreContracts", "MissionServer", "Postgres", "Cryptography", "TestSupport",
        "FerryDaemon",
      ], resources: [.copy("Resources")]),
    tests(
      "ConformanceTests",
      needs: [
        "Conformance", "FerryProtocol", "SQLite", "Postgres", "SyncClient", "SyncServer",
        "TestSupport",
      ]),
    tests("SimulatedDiskTests", needs: ["SimulatedDisk", "SQLite", "TestSupport"]),
    tests(
      "SimulationTests",
      needs: [
        "Simulation", "Conformance", "FerryProtocol", "HTTPServer", "Networking", "TestSupport",
        "FerrySim", "SimulatedDisk", "Missions", "Cryptography", "Executors",
      ]),
    tests(
      "PairTests",
      needs: [
        "Ferry", "SyncClient", "Networking", "Compression", "Executors", "Cryptography", "SQLite",
        "TestSupport",
        "FerryCommand", "FerryDaemon", "FerryChaos", "FerryBench",
      ]),
  ]
)
