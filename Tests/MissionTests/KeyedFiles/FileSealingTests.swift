import FerryMissions
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@Suite("An encrypted file store", .hangLimit)
struct FileSealingTests {
  private let directory: TemporaryDirectory
  private let folder: String
  private static let partBytes = (64 << 10) + 28
  private static let headBytes = 16

  init() throws {
    directory = try TemporaryDirectory(prefix: "ferry-files")
    folder = directory.file("store").path
  }

  @Test("neither contents nor keys are on the disk as they are")
  func hidden() async throws {
    let files = try await FileStore.open(folder, key: storeKey)
    let secret = Array(String(repeating: "the quick brown fox ", count: 50_000).utf8)
    try await files.put(secret, for: "https://example.org/private-name")
    try await files.close()
    for path in try FileManager.default.subpathsOfDirectory(atPath: folder) {
      let bytes = FileManager.default.contents(atPath: folder + "/" + path) ?? Data()
      for text in ["quick brown", "private-name", hash(secret).description] {
        #expect(bytes.firstRange(of: Data(text.utf8)) == nil, "\(path)")
      }
      #expect(bytes.firstRange(of: Data(hash(secret).bytes)) == nil, "\(path)")
    }
    // Without the key nobody can try addresses by their hashes.
    let plain = hash(Array("https://example.org/private-name".utf8)).description
    #expect(!files.path(for: "https://example.org/private-name").contains(plain))
  }

  @Test("another key, a missing one and a superfluous one are reported as such")
  func wrongKeys() async throws {
    let files = try await FileStore.open(folder, key: storeKey)
    try await files.put([1], for: "x")
    for key in [otherKey, nil, [1, 2, 3]] as [[UInt8]?] {
      #expect(await failure { _ = try await FileStore.open(folder, key: key) } == .wrongKey)
    }
    #expect(try await FileStore.open(folder, key: storeKey).read("x") == [1])
    let plain = directory.file("plain").path
    try await FileStore.open(plain).put([1], for: "x")
    #expect(await failure { _ = try await FileStore.open(plain, key: storeKey) } == .wrongKey)
    // An empty store takes any key.
    try await files.removeAll()
    let other = try await FileStore.open(folder, key: otherKey)
    try await other.put([2], for: "x")
    #expect(await failure { _ = try await FileStore.open(folder, key: storeKey) } == .wrongKey)
  }

  /// A change of a file by an attacker without the key.
  enum Attack: CaseIterable {
    case truncatedByPart, truncatedInPart, reordered, repeatedPart, extended, flippedNonce
    case flippedTag, flippedHead, otherFile, earlierVersion, emptied
  }

  @Test("a changed file is found by each read of it", arguments: Attack.allCases)
  func attacks(attack: Attack) async throws {
    let files = try await FileStore.open(folder, key: storeKey)
    let size = 3 * (64 << 10)
    try await files.put(seededBytes(1, size), for: "x")
    let earlier = try Data(contentsOf: URL(filePath: files.path(for: "x")))
    try await files.put(seededBytes(2, size), for: "x")
    try await files.put(seededBytes(3, size), for: "y")
    let other = try Data(contentsOf: URL(filePath: files.path(for: "y")))
    let (part, head) = (Self.partBytes, Self.headBytes)
    try change(files.path(for: "x")) { bytes in
      switch attack {
      case .truncatedByPart: bytes.removeLast(part)
      case .truncatedInPart: bytes.removeLast(1_000)
      case .reordered:
        let first = bytes[head..<head + part]
        bytes.replaceSubrange(head..<head + part, with: bytes[head + part..<head + 2 * part])
        bytes.replaceSubrange(head + part..<head + 2 * part, with: first)
      case .repeatedPart:
        bytes.replaceSubrange(head..<head + part, with: bytes[head + part..<head + 2 * part])
        bytes.replaceSubrange(
          head + part..<head + 2 * part, with: bytes[head + 2 * part..<head + 3 * part])
      case .extended: bytes += bytes.suffix(part)
      case .flippedNonce: for place in 0..<3 { bytes[head + place * part] ^= 1 }
      case .flippedTag: for place in 1...3 { bytes[head + place * part - 1] ^= 1 }
      case .flippedHead: bytes[15] ^= 1
      case .otherFile: bytes = [UInt8](other)
      case .earlierVersion: bytes = [UInt8](earlier)
      case .emptied: bytes = []
      }
    }
    guard case .damaged = try await files.check("x") else {
      Issue.record("the check did not find it")
      return
    }
    // The head says nothing about the content; reads do not need it.
    if attack != .flippedHead {
      #expect(await failure { _ = try await files.read("x", from: 0, count: 10) } == .damaged)
      #expect(await failure { _ = try await files.read("x") } == .damaged)
    }
    #expect(try await files.check("y") == .intact)
  }

  @Test("a changed index is found")
  func changedIndex() async throws {
    let files = try await FileStore.open(folder, key: storeKey)
    try await files.put([1], for: "x")
    try await files.put([2], for: "y")
    try await files.close()
    // The file and the row of `y`, under the name of `x`.
    let database = try IndexFile(folder)
    try database.execute("UPDATE files SET facts = (SELECT max(facts) FROM files)")
    let again = try await FileStore.open(folder, key: storeKey)
    #expect(await failure { _ = try await again.list() } == .damaged)
  }
}
