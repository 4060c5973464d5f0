extension Duration {
  /// How long a test waits for another process before it counts as hung: the one place to set it.
  /// No result depends on it; a machine that is ten times as slow passes too.
  package static let hangLimit = Duration.seconds(600)
}
