// A window with one web view for `ferry shell --window`.
//
// The first line of standard input is the address of the page. The window prints `crashed REASON` when
// the page's process ends, and the shell answers with another address on a line. The window ends with
// status 0 when the user closes it, and when standard input ends, since the shell is gone then.
//
// The web view keeps nothing on the disk, opens no other windows, and loads nothing but the shell's own
// pages.
#include <glib-unix.h>
#include <stdio.h>
#include <string.h>
#include <webkit2/webkit2.h>

enum { address_max = 512 };

static char address[address_max];
static char origin[address_max];

static gboolean is_own(const char *uri) {
  return uri != NULL && strncmp(uri, origin, strlen(origin)) == 0;
}

// Only the shell's own pages; a link to another address does nothing.
static gboolean decide(WebKitWebView *view, WebKitPolicyDecision *decision,
                       WebKitPolicyDecisionType type, gpointer data) {
  (void)view, (void)data;
  if (type == WEBKIT_POLICY_DECISION_TYPE_RESPONSE) return FALSE;
  WebKitNavigationAction *action = webkit_navigation_policy_decision_get_navigation_action(
      WEBKIT_NAVIGATION_POLICY_DECISION(decision));
  const char *uri = webkit_uri_request_get_uri(webkit_navigation_action_get_request(action));
  if (type == WEBKIT_POLICY_DECISION_TYPE_NAVIGATION_ACTION && is_own(uri)) return FALSE;
  webkit_policy_decision_ignore(decision);
  return TRUE;
}

static gboolean refuse_permission(WebKitWebView *view, WebKitPermissionRequest *request,
                                  gpointer data) {
  (void)view, (void)data;
  webkit_permission_request_deny(request);
  return TRUE;
}

static void crashed(WebKitWebView *view, WebKitWebProcessTerminationReason reason, gpointer data) {
  (void)view, (void)data;
  const char *text = "its process crashed";
  if (reason == WEBKIT_WEB_PROCESS_EXCEEDED_MEMORY_LIMIT) text = "its process took too much memory";
  if (reason == WEBKIT_WEB_PROCESS_TERMINATED_BY_API) text = "its process was ended";
  printf("crashed %s\n", text);
  fflush(stdout);
}

static void titled(WebKitWebView *view, GParamSpec *property, gpointer window) {
  (void)property;
  const char *title = webkit_web_view_get_title(view);
  gtk_window_set_title(GTK_WINDOW(window), title != NULL && *title != 0 ? title : "Ferry");
}

// Ctrl+W and Ctrl+Q close the window, Ctrl+R loads the page again.
static gboolean key_pressed(GtkWidget *window, GdkEventKey *event, gpointer view) {
  if ((event->state & GDK_CONTROL_MASK) == 0) return FALSE;
  if (event->keyval == GDK_KEY_w || event->keyval == GDK_KEY_q) {
    gtk_widget_destroy(window);
    return TRUE;
  }
  if (event->keyval == GDK_KEY_r) {
    webkit_web_view_reload(WEBKIT_WEB_VIEW(view));
    return TRUE;
  }
  return FALSE;
}

static gboolean input_came(GIOChannel *channel, GIOCondition condition, gpointer view) {
  (void)condition;
  char *line = NULL;
  gsize end = 0;
  GIOStatus status = g_io_channel_read_line(channel, &line, NULL, &end, NULL);
  if (status == G_IO_STATUS_NORMAL && line != NULL) {
    line[end] = 0;
    if (is_own(line)) webkit_web_view_load_uri(WEBKIT_WEB_VIEW(view), line);
  }
  g_free(line);
  if (status == G_IO_STATUS_NORMAL || status == G_IO_STATUS_AGAIN) return TRUE;
  gtk_main_quit();
  return FALSE;
}

static gboolean interrupted(gpointer data) {
  (void)data;
  gtk_main_quit();
  return FALSE;
}

static gboolean read_address(void) {
  if (fgets(address, sizeof address, stdin) == NULL) return FALSE;
  address[strcspn(address, "\r\n")] = 0;
  if (strncmp(address, "http://127.0.0.1:", 17) != 0) return FALSE;
  const char *path = strchr(address + 17, '/');
  if (path == NULL) return FALSE;
  memcpy(origin, address, (size_t)(path - address) + 1);
  return TRUE;
}

static WebKitWebView *make_view(void) {
  WebKitWebContext *context = webkit_web_context_new_ephemeral();
  WebKitSettings *settings = webkit_settings_new();
  webkit_settings_set_enable_developer_extras(settings, g_getenv("FERRY_WINDOW_INSPECTOR") != NULL);
  webkit_settings_set_javascript_can_open_windows_automatically(settings, FALSE);
  webkit_settings_set_allow_modal_dialogs(settings, FALSE);
  // No page of the shell needs the network.
  webkit_settings_set_enable_webrtc(settings, FALSE);
  return WEBKIT_WEB_VIEW(g_object_new(WEBKIT_TYPE_WEB_VIEW, "web-context", context, "settings",
                                      settings, NULL));
}

int main(int count, char **arguments) {
  if (count > 1 && strcmp(arguments[1], "--version") == 0) {
    puts("0.1.0");
    return 0;
  }
  // The address has to be read before any other reader of standard input.
  setvbuf(stdin, NULL, _IONBF, 0);
  if (!read_address()) {
    fputs("ferry-window: the first line of standard input is the address of a shell\n", stderr);
    return 64;
  }
  if (!gtk_init_check(&count, &arguments)) {
    fputs("ferry-window: there is no display\n", stderr);
    return 69;
  }
  GtkWidget *window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
  gtk_window_set_default_size(GTK_WINDOW(window), 1100, 800);
  gtk_window_set_title(GTK_WINDOW(window), "Ferry");
  WebKitWebView *view = make_view();
  gtk_container_add(GTK_CONTAINER(window), GTK_WIDGET(view));
  g_signal_connect(window, "destroy", G_CALLBACK(gtk_main_quit), NULL);
  g_signal_connect(window, "key-press-event", G_CALLBACK(key_pressed), view);
  g_signal_connect(view, "decide-policy", G_CALLBACK(decide), NULL);
  g_signal_connect(view, "permission-request", G_CALLBACK(refuse_permission), NULL);
  g_signal_connect(view, "web-process-terminated", G_CALLBACK(crashed), NULL);
  g_signal_connect(view, "notify::title", G_CALLBACK(titled), window);
  GIOChannel *input = g_io_channel_unix_new(0);
  g_io_channel_set_encoding(input, NULL, NULL);
  g_io_add_watch(input, G_IO_IN | G_IO_HUP | G_IO_ERR, input_came, view);
  g_unix_signal_add(SIGTERM, interrupted, NULL);
  g_unix_signal_add(SIGINT, interrupted, NULL);
  webkit_web_view_load_uri(view, address);
  gtk_widget_show_all(window);
  gtk_main();
  return 0;
}
