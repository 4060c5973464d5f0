import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerrySyncServer
import FerryTestSupport
import Testing

/// Every contract over every store, one after the other: PostgreSQL has connections for a few.
@Suite(.serialized, .hangLimit)
struct StoreContractTests {
  @Test("SQLite:", arguments: StoreContract.all)
  func embedded(contract: StoreContract) async throws {
    let directory = try TemporaryDirectory()
    try await contract.check(
      StoreUnderTest(isShared: false) { limits, quotas in
        try await SQLiteStore(directory: directory.url.path, limits: limits, quotas: quotas)
      })
  }

  @Test("SQLite, with all but the smallest packets in slices:", arguments: StoreContract.all)
  func sliced(contract: StoreContract) async throws {
    let directory = try TemporaryDirectory()
    try await contract.check(
      StoreUnderTest(isShared: false) { limits, quotas in
        try await SQLiteStore(
          directory: directory.url.path, limits: limits, quotas: quotas,
          slice: WriteSlice(rows: 2, bytes: 500, matches: 1))
      })
  }

  @Test("PostgreSQL:", arguments: StoreContract.all)
  func postgres(contract: StoreContract) async throws {
    let url = try PostgresCluster.shared().createDatabase()
    try await contract.check(
      StoreUnderTest(isShared: true) { limits, quotas in
        try await PostgresStore(PostgresAddresses(url), limits: limits, quotas: quotas)
      })
  }

  @Test("SQLite, made before bundles:", arguments: StoreContract.ofBundles)
  func olderEmbedded(contract: StoreContract) async throws {
    let directory = try TemporaryDirectory()
    let path = directory.url.path
    await (try await SQLiteStore(directory: path)).close()
    try SQLiteConnection(path: directory.file("ferry.sqlite").path).execute(
      "DROP TABLE bundle_reports; DROP TABLE bundle_counts")
    try await contract.check(
      StoreUnderTest(isShared: false) { limits, quotas in
        try await SQLiteStore(directory: path, limits: limits, quotas: quotas)
      })
  }

  @Test("PostgreSQL, made before bundles:", arguments: StoreContract.ofBundles)
  func olderPostgres(contract: StoreContract) async throws {
    let url = try PostgresCluster.shared().createDatabase()
    await (try await PostgresStore(url: url)).close()
    try PostgresConnection(url: url).execute("DROP TABLE bundle_reports, bundle_counts")
    try await contract.check(
      StoreUnderTest(isShared: true) { limits, quotas in
        try await PostgresStore(PostgresAddresses(url), limits: limits, quotas: quotas)
      })
  }

  @Test(
    "PostgreSQL behind a pooler of transactions:",
    .enabled(if: TransactionPooler.isAvailable, "pgbouncer is not installed"),
    arguments: StoreContract.all)
  func pooled(contract: StoreContract) async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let pooler = try await TransactionPooler(before: url)
    try await contract.check(
      StoreUnderTest(isShared: true) { limits, quotas in
        try await PostgresStore(
          PostgresAddresses(pooler.url(of: url), direct: url), limits: limits, quotas: quotas)
      })
  }
}
