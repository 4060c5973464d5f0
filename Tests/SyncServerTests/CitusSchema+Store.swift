import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

extension CitusSchema {
  var addresses: PostgresAddresses { PostgresAddresses(url) }

  /// The addresses of a node that uses a worker.
  ///
  /// - Parameter port: Of a proxy before the worker, if there is one.
  func addresses(ofWorkerAt port: UInt16? = nil) throws -> PostgresAddresses {
    let worker = try Self.worker()
    var parts = try #require(URLComponents(string: url))
    parts.host = port == nil ? worker.host : "127.0.0.1"
    parts.port = Int(port ?? worker.port)
    return PostgresAddresses(url, worker: parts.string)
  }

  /// Makes a distributed store empty again.
  func clear() throws {
    let tables = PostgresDistribution.columns.keys + PostgresDistribution.copied
    let names = tables.filter { $0 != "ferry_schema" }.sorted().joined(separator: ", ")
    try PostgresConnection(url: url).execute("TRUNCATE \(names)")
  }
}
