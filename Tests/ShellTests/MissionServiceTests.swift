import FerryMissions
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryShell

@Suite("The services about missions", .hangLimit)
struct MissionServiceTests {
  /// A space out of reach.
  private struct Offline: MissionCatalogue, Downloader {
    let name: SpaceName

    func space() async throws(MissionError) -> SpaceName { name }

    func missions() async throws(MissionError) -> [MissionRecord] { [] }

    func download(
      _ job: DownloadJob, progress: @escaping @Sendable (DownloadProgress) -> Void
    ) async throws(DownloadError) -> DownloadOutcome {
      throw DownloadError(.offline, "there is no connection")
    }
  }

  private static let filesCount = 20

  private let folder: TemporaryDirectory
  private let store: SQLiteMissionStore
  private let content: DiskFileStore
  private let space: SpaceName
  private let services: MissionServices
  private let bundle: PageVersion
  private let files = PageFiles(prefix: "/t/1/-/files/")

  init() async throws {
    folder = try TemporaryDirectory()
    store = try await SQLiteMissionStore.open(folder.file("missions.db").path)
    content = try DiskFileStore(root: folder.file("content").path)
    space = try #require(SpaceName("test"))
    bundle = PageVersion(
      name: "probe", version: "1", entry: try #require(BundlePath("index.html")), services: [])
    let offline = Offline(name: space)
    services = MissionServices(
      try await MissionManager.open(
        store: store, files: content, downloader: offline, catalogue: offline))
  }

  private static func bytes(_ number: Int) -> [UInt8] {
    [UInt8](repeating: UInt8(number), count: 1_000)
  }

  /// Puts content in place, as a download does. Returns the item.
  private func item(_ number: Int) throws -> MissionItem {
    let draft = folder.file("draft")
    try Data(Self.bytes(number)).write(to: draft)
    let hash = try ContentHash(ofFile: draft.path)
    let place = URL(filePath: try #require(content.plainPath(of: hash)))
    try FileManager.default.createDirectory(
      at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
    try FileManager.default.moveItem(at: draft, to: place)
    return MissionItem(path: "\(number).bin", size: 1_000, hash: hash)
  }

  /// Adds a mission whose files are here.
  private func add(_ name: String, _ items: [MissionItem]) async throws {
    let manifest = MissionManifest(
      space: space, id: try #require(MissionID(name)), version: 1, items: items)
    let document = manifest.encoded()
    let record = MissionRecord(
      of: manifest, hash: items[0].hash, manifestSize: Int64(document.count),
      signature: [UInt8](repeating: 0, count: 64), signer: [UInt8](repeating: 0, count: 32),
      publishedAt: 1)
    let version = try await store.add(record, at: 1).version
    try await store.setManifest(document, manifest, of: version)
    var hashes: Set<ContentHash> = []
    for item in items where hashes.insert(item.hash).inserted {
      try await store.addObject(
        ObjectRow(
          content: StoredContent(hash: item.hash, size: item.size), isDurable: true, at: 1),
        chunkSize: manifest.chunkSize, chunks: [], path: content.plainPath(of: item.hash))
    }
    try await store.complete(version, at: 1)
  }

  private func list(_ mission: String) async throws -> [ServiceValue] {
    let handler = try #require(services.files.handler)
    let result = try await handler(
      ServiceCall(argument: ["mission": .text(mission)], bundle: bundle, files: files))
    #expect(services.files.result.fault(in: result) == nil)
    return try #require(result.list)
  }

  /// Returns how many files of missions this process has open.
  private func openFiles() throws -> Int {
    let objects = folder.url.lastPathComponent + "/content/objects/"
    let all = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
    return all.count { number in
      let path = try? FileManager.default.destinationOfSymbolicLink(
        atPath: "/proc/self/fd/\(number)")
      return path?.contains(objects) == true
    }
  }

  private func read(_ file: ServiceValue) async throws -> [UInt8]? {
    let address = try #require(file["file"]?.text)
    return try await files.content(at: address)?.readAll()
  }

  @Test("a page that lists a mission opens no file of it, and a page that reads all keeps few open")
  func descriptors() async throws {
    try await add("tour", try (1...Self.filesCount).map { try item($0) })
    let listed = try await list("tour")
    #expect(listed.count == Self.filesCount)
    for _ in 1...5 {
      let again = try await list("tour")
      #expect(again == listed)
    }
    #expect(try openFiles() == 0)
    for _ in 1...2 {
      for (index, file) in listed.enumerated() {
        let read = try await read(file)
        #expect(read == Self.bytes(index + 1))
      }
    }
    let open = try openFiles()
    #expect((1...OpenContents.openMax).contains(open))
    files.close()
    #expect(files.content(at: listed[0]["file"]?.text ?? "") == nil)
  }

  @Test("a mission with more files than a page has addresses is too large")
  func tooMany() async throws {
    let one = try item(1)
    let items = (0...PageFiles.linksMax).map { number in
      MissionItem(path: "\(number).bin", size: one.size, hash: one.hash)
    }
    try await add("most", Array(items.dropLast()))
    let most = try await list("most")
    let first = try #require(most.first)
    let last = try #require(most.last)
    let ends = [try await read(first), try await read(last)]
    #expect(ends == [Self.bytes(1), Self.bytes(1)])
    try await add("large", items)
    do {
      _ = try await list("large")
      Issue.record("it is listed")
    } catch {
      #expect(ServiceError(error).code == "too_large")
    }
  }
}
