package main

import "time"

// servers are the servers of package.json with the calls that are made. Where arguments
// are wrong, or there is no such tool, that is what the call is for.
func servers(i *installation) []*server {
	return []*server{
		everything("Streamable HTTP", i.http("server-everything", []string{"streamableHttp"}, nil)),
		everything("stdio", i.stdio("server-everything", []string{"stdio"}, nil)),
		{name: "server-filesystem", transport: "stdio", start: i.stdio("server-filesystem", []string{"{dir}"}, nil), calls: files},
		{name: "server-memory", transport: "stdio", start: i.stdio("server-memory", nil, []string{"MEMORY_FILE_PATH={dir}/memory.jsonl"}), calls: memory},
		{name: "server-sequential-thinking", transport: "stdio", start: i.stdio("server-sequential-thinking", nil, nil), calls: thoughts},
	}
}

func everything(transport string, start starter) *server {
	return &server{name: "server-everything", transport: transport, start: start, calls: []call{
		{tool: "echo", args: `{"message":"hi"}`},
		{tool: "echo", args: `{"message":"<é€\u0000 \ud83d\ude00 \\ \" 9007199254740993>"}`},
		{tool: "echo", args: `{}`},
		{tool: "get-annotated-message", args: `{"messageType":"error","includeImage":true}`},
		{tool: "get-env", args: `{}`},
		{tool: "get-resource-links", args: `{"count":3}`},
		{tool: "get-resource-reference", args: `{"resourceType":"Text","resourceId":1}`},
		{tool: "get-resource-reference", args: `{"resourceType":"Blob","resourceId":2}`},
		{tool: "get-resource-reference", args: `{"resourceType":"Text","resourceId":-1}`},
		{tool: "get-roots-list", args: `{}`},
		{tool: "get-structured-content", args: `{"location":"Chicago"}`},
		{tool: "get-sum", args: `{"a":0.1,"b":0.2}`},
		{tool: "get-sum", args: `{"a":1e300,"b":-5}`},
		{tool: "get-sum", args: `{"a":1,"b":"x"}`},
		{tool: "get-tiny-image", args: `{}`},
		{tool: "gzip-file-as-resource", args: `{"name":"a.gz","data":"data:text/plain,hello","outputType":"resource"}`},
		{tool: "gzip-file-as-resource", args: `{"name":"b.gz","data":"data:text/plain,hello","outputType":"resourceLink"}`},
		{tool: "gzip-file-as-resource", args: `{"data":"ftp://127.0.0.1/x"}`},
		// It insists on a task, which the SDK cannot ask for (go-sdk v1.8.0).
		{tool: "simulate-research-query", args: `{"topic":"clocks"}`},
		{tool: "toggle-simulated-logging", args: `{}`},
		{tool: "toggle-simulated-logging", args: `{}`},
		{tool: "toggle-subscriber-updates", args: `{}`},
		{tool: "toggle-subscriber-updates", args: `{}`},
		{tool: "trigger-elicitation-request", args: `{}`},
		{tool: "trigger-sampling-request", args: `{"prompt":"say it","maxTokens":10}`},
		{tool: "trigger-url-elicitation", args: `{"url":"https://example.com/","message":"look","elicitationId":"e-1"}`},
		{tool: "trigger-long-running-operation", args: `{"duration":1,"steps":2}`},
		{tool: "no-such-tool", args: `{}`},
		{tool: "trigger-long-running-operation", args: `{"duration":20,"steps":2}`, deadline: 700 * time.Millisecond},
		{tool: "echo", args: `{"message":"the session lives"}`},
		{tool: "trigger-long-running-operation", args: `{"duration":20,"steps":3}`, kill: true},
		{tool: "echo", args: `{"message":"is anybody there?"}`},
	}}
}

var files = []call{
	{tool: "list_allowed_directories", args: `{}`},
	{tool: "create_directory", args: `{"path":"{dir}/d/e"}`},
	{tool: "write_file", args: `{"path":"{dir}/d/a.txt","content":"one\ntwo\nthrée\n"}`},
	{tool: "write_file", args: `{"path":"{dir}/d/pixel.png","content":"not a picture"}`},
	{tool: "read_file", args: `{"path":"{dir}/d/a.txt"}`},
	{tool: "read_text_file", args: `{"path":"{dir}/d/a.txt","head":2}`},
	{tool: "read_text_file", args: `{"path":"{dir}/d/a.txt","head":1,"tail":1}`},
	{tool: "read_text_file", args: `{"path":"{dir}/none.txt"}`},
	{tool: "read_text_file", args: `{"path":"/etc/hostname"}`},
	{tool: "read_text_file", args: `{}`},
	{tool: "read_media_file", args: `{"path":"{dir}/d/pixel.png"}`},
	{tool: "read_multiple_files", args: `{"paths":["{dir}/d/a.txt","{dir}/none.txt"]}`},
	{tool: "edit_file", args: `{"path":"{dir}/d/a.txt","edits":[{"oldText":"two","newText":"2"}],"dryRun":true}`},
	{tool: "edit_file", args: `{"path":"{dir}/d/a.txt","edits":[{"oldText":"two","newText":"2"}]}`},
	{tool: "edit_file", args: `{"path":"{dir}/d/a.txt","edits":[{"oldText":"two","newText":"2"}]}`},
	{tool: "list_directory", args: `{"path":"{dir}/d"}`},
	{tool: "list_directory_with_sizes", args: `{"path":"{dir}/d"}`},
	{tool: "directory_tree", args: `{"path":"{dir}"}`},
	{tool: "search_files", args: `{"path":"{dir}","pattern":"**/*.txt"}`},
	{tool: "get_file_info", args: `{"path":"{dir}/d/a.txt"}`},
	{tool: "move_file", args: `{"source":"{dir}/d/a.txt","destination":"{dir}/b.txt"}`},
	{tool: "move_file", args: `{"source":"{dir}/d/a.txt","destination":"{dir}/b.txt"}`},
}

var memory = []call{
	{tool: "read_graph", args: `{}`},
	{tool: "create_entities", args: `{"entities":[{"name":"Ada","entityType":"person","observations":["wrote programs"]},{"name":"Engine","entityType":"machine","observations":[]}]}`},
	{tool: "create_relations", args: `{"relations":[{"from":"Ada","to":"Engine","relationType":"programs"}]}`},
	{tool: "add_observations", args: `{"observations":[{"entityName":"Engine","contents":["has a mill","has a store"]}]}`},
	{tool: "add_observations", args: `{"observations":[{"entityName":"Nobody","contents":["x"]}]}`},
	{tool: "search_nodes", args: `{"query":"mill"}`},
	{tool: "open_nodes", args: `{"names":["Ada","Engine"]}`},
	{tool: "read_graph", args: `{}`},
	{tool: "delete_observations", args: `{"deletions":[{"entityName":"Engine","observations":["has a store"]}]}`},
	{tool: "delete_relations", args: `{"relations":[{"from":"Ada","to":"Engine","relationType":"programs"}]}`},
	{tool: "delete_entities", args: `{"entityNames":["Ada"]}`},
	{tool: "read_graph", args: `{}`},
	{tool: "create_entities", args: `{"entities":"Ada"}`},
}

var thoughts = []call{
	{tool: "sequentialthinking", args: `{"thought":"first","nextThoughtNeeded":true,"thoughtNumber":1,"totalThoughts":2}`},
	{tool: "sequentialthinking", args: `{"thought":"other","nextThoughtNeeded":true,"thoughtNumber":2,"totalThoughts":2,"branchFromThought":1,"branchId":"b"}`},
	{tool: "sequentialthinking", args: `{"thought":"last","nextThoughtNeeded":false,"thoughtNumber":3,"totalThoughts":2}`},
	{tool: "sequentialthinking", args: `{"thought":"none","nextThoughtNeeded":false,"thoughtNumber":0,"totalThoughts":2}`},
}
