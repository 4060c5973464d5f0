import Ferry

/// The examples of Documentation/stores.md, line by line; `DocumentedStoresTests` compares the lines.
func settings(_ replica: Replica) async throws {
  let settings = SettingsStore(replica)
  try await settings.set("dark", for: "theme")
  let theme = try await settings.value("theme", as: String.self) ?? "light"
  print("\(theme), of \(try await settings.names())")
}

func secrets(folder: String, key: [UInt8]) async throws {
  let secrets = try await FileSecretStore.open(folder, key: key)
  try await secrets.set(Array("s3cret".utf8), for: "mail password")
  let password = try await secrets.secret("mail password")
  print("\(password?.count ?? 0) bytes")
  try await secrets.set(nil, for: "mail password")
}
