import FerryProtocol
import FerrySyncServer

/// One requirement of every store, whatever is behind it.
package struct StoreContract: Sendable, CustomStringConvertible {
  /// The requirement, a sentence.
  package let description: String
  private let body: @Sendable (StoreUnderTest) async throws -> Void

  init(_ description: String, _ body: @escaping @Sendable (StoreUnderTest) async throws -> Void) {
    self.description = description
    self.body = body
  }

  /// Throws a ``ContractViolation`` if the store violates it.
  package func check(_ store: StoreUnderTest) async throws { try await body(store) }

  /// All contracts.
  package static let all: [StoreContract] =
    chains + buffering + transactions + pulling + values + clocks + crowds + histories
    + administration + access + members
    + notices + recordFetches + refusals + schemas + schemaFits + uniqueKeys
    + batches + retention + prunedHistories + digests + historyHashes + timelines + knownHistories
    + missions + bundles + ownership + sizes + slices + tables + columns + quotas + deviceAges
    + names
    + deviceNames
    + inspection + feeds

  /// Those about bundles and the reports of devices.
  package static var ofBundles: [StoreContract] { bundles }
}

/// A store, empty at first, that can be opened several times over the same data.
package struct StoreUnderTest: Sendable {
  private let opening: @Sendable (Limits, Quotas) async throws -> any SyncStore
  /// Whether several instances may write at the same time.
  package let isShared: Bool

  package init(
    isShared: Bool, open: @escaping @Sendable (Limits, Quotas) async throws -> any SyncStore
  ) {
    self.isShared = isShared
    opening = open
  }

  /// Opens the store, once more if it is open already.
  package func open(
    _ limits: Limits, _ quotas: Quotas = .standard
  ) async throws -> any SyncStore { try await opening(limits, quotas) }

  /// Opens the store, makes a space, runs `body` and closes the store.
  func withSpace(
    limits: Limits = .standard, quotas: Quotas = .standard,
    _ body: (SpaceUnderTest) async throws -> Void
  ) async throws {
    let store = try await open(limits, quotas)
    do {
      let space = try await store.createSpace(.test)
      try await body(SpaceUnderTest(store: store, space: space))
    } catch {
      await store.close()
      throw error
    }
    await store.close()
  }
}

extension SpaceName {
  /// The space of the contracts.
  static let test = name("contract")

  static func name(_ text: String) -> SpaceName {
    guard let name = SpaceName(text) else { preconditionFailure("\(text) is no name of a space") }
    return name
  }
}

/// A store's violation of a contract.
package struct ContractViolation: Error, CustomStringConvertible {
  package let description: String
}

/// Throws unless `condition` holds.
func require(
  _ condition: Bool, _ violation: @autoclosure () -> String, line: Int = #line
) throws(ContractViolation) {
  if !condition { throw ContractViolation(description: "\(violation()) (line \(line))") }
}

/// Throws unless both are equal.
func require<T: Equatable>(
  _ found: T, is wanted: T, _ what: @autoclosure () -> String, line: Int = #line
) throws(ContractViolation) {
  try require(found == wanted, "\(what()): \(wanted) was expected, not \(found)", line: line)
}

/// Returns the value, which must be there.
func unwrap<T>(
  _ value: T?, _ what: @autoclosure () -> String, line: Int = #line
) throws(ContractViolation) -> T {
  guard let value else { throw ContractViolation(description: "\(what()) (line \(line))") }
  return value
}
