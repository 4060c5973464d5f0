import FerryCommandLine
import FerryNetworking
import FerryProtocol
import FerrySyncServer
import Foundation

/// Lines of a feed.
struct FeedPage: Sendable {
  var lines: [String]
  /// The cursor of the last line; `nil` without any line.
  var last: Cursor?
}

/// The source of a feed: the store, or a server.
protocol FeedSource: Sendable {
  /// Returns the lines after a place; none at the head.
  func page(after place: Cursor?) async throws -> FeedPage
}

enum FeedSources {
  /// Runs `body` on the source of the command line.
  static func with(
    _ arguments: ParsedArguments, _ body: (any FeedSource) async throws -> Void
  ) async throws {
    if let url = arguments.stringIfPresent("server") {
      let space = try SpaceCommands.name(try arguments.string("name"))
      return try await body(
        RemoteFeed(
          url, token: TokenOptions.token(arguments), space: space,
          authorities: arguments.stringIfPresent("ca")))
    }
    try await SpaceCommands.withSpace(arguments) { store, space in
      try await body(LocalFeed(feed: SpaceFeed(store), space: space))
    }
  }
}

private struct LocalFeed: FeedSource {
  let feed: SpaceFeed
  let space: SpaceSummary

  func page(after place: Cursor?) async throws -> FeedPage {
    let found = try await feed.page(in: space.id, after: place).get()
    return FeedPage(
      lines: found.map { [$0].lines }.map { String(decoding: $0.dropLast(), as: UTF8.self) },
      last: found.last?.cursor)
  }
}

/// The feed of a server elsewhere, through the HTTP interface.
struct RemoteFeed: FeedSource {
  private let space: SpaceName
  private let client: NetworkClient

  /// - Parameter authorities: a PEM file of certificate authorities to trust besides the system's.
  init(
    _ url: String, token: String?, space: SpaceName, authorities: String?
  ) throws(UsageError) {
    self.space = space
    client = NetworkClient(
      try RemoteMissions.configuration(url, token: token, authorities: authorities))
  }

  func page(after place: Cursor?) async throws -> FeedPage {
    var query = [QueryItem("limit", "\(SpaceFeed.operationsMax)")]
    if let place { query.append(QueryItem("since", place.description)) }
    let request = NetworkRequest("spaces/\(space)/feed", method: .get, query: query)
    let answer: NetworkResponse
    do throws(NetworkError) {
      answer = try await client.send(request)
    } catch {
      if case .rejected = error.kind, let response = error.response {
        throw Self.rejection(response)
      }
      throw CommandFailure(
        "the server cannot be reached", why: error.description,
        next: "check --server, and continue later with the cursor of the last line",
        status: error.isTransient ? .unreachable : .failed, code: error.reason)
    }
    return try Self.page(answer.body, after: place)
  }

  private static func rejection(_ answer: NetworkResponse) -> any Error {
    Problem(decoding: answer.body)
      ?? CommandFailure(
        "the server refused", why: "it answered with status \(answer.status)",
        next: "check --server: is it a Ferry server with a feed?", code: "refused")
  }

  /// Reads lines, each with a cursor behind the one before it: so the feed ends even with a server
  /// that repeats itself.
  static func page(_ body: [UInt8], after place: Cursor?) throws(CommandFailure) -> FeedPage {
    var page = FeedPage(lines: [], last: nil)
    var reached = place?.received ?? 0
    for bytes in body.split(separator: UInt8(ascii: "\n")) {
      guard let line = try? JSONDecoder().decode(FeedLine.self, from: Data(bytes)),
        let cursor = Cursor(line.cursor), cursor.received > reached
      else {
        throw CommandFailure(
          "the server's feed cannot be read",
          why: "a line has no cursor, or one that is not behind the line before it",
          next: "check --server: is it a Ferry server with a feed?", code: "malformed_answer")
      }
      reached = cursor.received
      page.lines.append(String(decoding: bytes, as: UTF8.self))
      page.last = cursor
    }
    return page
  }
}

private struct FeedLine: Decodable {
  let cursor: String
}
