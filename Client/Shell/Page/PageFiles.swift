import FerryCryptography
import FerryPlatform
import Synchronization

/// Large data of one page: content under unguessable addresses, valid until the page ends.
///
/// ```swift
/// let address = call.files.add(ServedContent(picture, mediaType: "image/png"))
/// return ["picture": .text(address)]
/// ```
public final class PageFiles: Sendable {
  /// The most bytes of content in memory for one page at once; older content is dropped first.
  public static let memoryBytesMax = 64 << 20
  /// The most addresses; older ones are dropped first.
  public static let linksMax = 10_000

  private struct State {
    var next = 0
    var links: [String: (number: Int, content: ServedContent, bytes: Int, key: [UInt8]?)] = [:]
    /// The links by the keys of their content.
    var known: [[UInt8]: String] = [:]
    var bytes = 0
    var isClosed = false
  }

  /// The open files behind the addresses.
  let open = OpenContents()
  private let prefix: String
  private let state = Mutex(State())

  /// Creates the files of a page.
  ///
  /// - Parameter prefix: the path before each link.
  package init(prefix: String) { self.prefix = prefix }

  /// Adds content; returns the address, for elements and requests of the page.
  ///
  /// Documents and scripts are served as bytes, so they cannot run as parts of the page.
  public func add(_ content: ServedContent) -> String { add(content, bytes: 0, key: nil) }

  /// Adds bytes. Equal bytes have one address.
  public func add(_ bytes: [UInt8], mediaType: String) -> String {
    let key = SHA256.digest(of: bytes) + Array(mediaType.utf8)
    return renewed(key)
      ?? add(ServedContent(bytes, mediaType: mediaType), bytes: bytes.count, key: key)
  }

  /// Adds content with the identifier `key`. Content with the same key keeps its address.
  func add(_ content: ServedContent, key: [UInt8]) -> String {
    renewed(key) ?? add(content, bytes: 0, key: key)
  }

  /// Returns the address of known content; it counts as new from now on.
  private func renewed(_ key: [UInt8]) -> String? {
    state.withLock { state in
      guard let link = state.known[key] else { return nil }
      state.next += 1
      state.links[link]?.number = state.next
      return prefix + link
    }
  }

  private func add(_ content: ServedContent, bytes: Int, key: [UInt8]?) -> String {
    let link = Secret().text
    state.withLock { state in
      guard !state.isClosed else { return }
      state.next += 1
      state.links[link] = (state.next, content, bytes, key)
      if let key { state.known[key] = link }
      state.bytes += bytes
      while state.links.count > Self.linksMax || state.bytes > Self.memoryBytesMax,
        state.links.count > 1
      {
        Self.dropOldest(&state)
      }
    }
    return prefix + link
  }

  private static func dropOldest(_ state: inout State) {
    guard let oldest = state.links.min(by: { $0.value.number < $1.value.number }) else { return }
    state.links[oldest.key] = nil
    state.bytes -= oldest.value.bytes
    if let key = oldest.value.key { state.known[key] = nil }
  }

  /// Returns content by the address, such as that of an upload; `nil` if it is unknown.
  public func content(at address: String) -> ServedContent? {
    guard let link = address.rest(after: prefix) else { return nil }
    return content(link: String(link))
  }

  func content(link: String) -> ServedContent? { state.withLock { $0.links[link]?.content } }

  /// Ends all addresses.
  func close() {
    state.withLock { state in
      state = State()
      state.isClosed = true
    }
  }
}
