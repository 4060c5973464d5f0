import Ferry

/// The example of bundles in Documentation/bundles.md, line by line; `BundlePairTests` compares the
/// lines.
func bundleExample(replica: Replica) async throws {
  let bundles = try await replica.bundles()
  try await bundles.update("board")
  // For each page load:
  if let board = try await bundles.active("board") {
    let page = try await board.open(board.entry)
    print(page.mediaType, try await page.readAll().count)
    // Or: try await bundles.fail(board, reason: "it is blank")
    try await bundles.confirm(board)
  }
}
